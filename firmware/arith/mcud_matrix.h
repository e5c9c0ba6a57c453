/* The second matrix of a product: its lines, wherever they lie. */
#ifndef MCUD_MATRIX_H
#define MCUD_MATRIX_H

#include <stddef.h>

#include "mcud.h"

/* Where the matrix for a row of the output begins, or NULL if its `lines` lines lie in several blocks.
 * Batched: a row holds a matrix. Otherwise a row is a line, and all rows are the one matrix. */
static inline const void *mcud_matrix(const mcud_tensor *tensor, int32_t batched, int32_t lines, int32_t row)
{
    if (batched != 0) {
        return mcud_row(tensor, row);
    }
    return (int32_t)tensor->block_rows >= lines ? mcud_row(tensor, 0) : NULL;
}

/* Line `index`; `matrix` is what mcud_matrix gave. */
static inline const void *mcud_matrix_line(const mcud_tensor *tensor, const void *matrix, int32_t index,
                                           int32_t line_bytes)
{
    return matrix != NULL ? (const uint8_t *)matrix + index * line_bytes : mcud_row(tensor, index);
}

#endif
