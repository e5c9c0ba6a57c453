/* The lines of the second matrix of a product, which may be in several blocks. */
#ifndef MCUD_MATRIX_H
#define MCUD_MATRIX_H

#include <stddef.h>

#include "mcud.h"

typedef struct {
    const mcud_tensor *tensor;
    const uint8_t *start; /* of the first line, or NULL if the lines are in several blocks */
    int32_t offset;       /* of a line in its row */
    int32_t pitch;        /* bytes from a line to the next one of a block */
} mcud_matrix;

/* Matrix `number` of `lines` lines of `line_bytes` bytes. A row holds a line of each of `matrices` matrices, or all
 * lines of one matrix if `matrices` is 0. */
static inline mcud_matrix mcud_matrix_of(const mcud_tensor *tensor, int32_t number, int32_t matrices, int32_t lines,
                                         int32_t line_bytes)
{
    if (matrices == 0) {
        const mcud_matrix own = {tensor, mcud_row(tensor, number), 0, line_bytes};
        return own;
    }
    mcud_matrix matrix = {tensor, NULL, number * line_bytes, matrices * line_bytes};
    if (tensor->block_rows - tensor->lead >= (uint32_t)lines) { /* also MCUD_WHOLE */
        matrix.start = (const uint8_t *)mcud_row(tensor, 0) + matrix.offset;
    }
    return matrix;
}

/* The line after the longest run from `line` on, at most to `lines`, whose lines are `pitch` bytes apart. */
static inline int32_t mcud_matrix_run_end(const mcud_matrix *matrix, int32_t line, int32_t lines)
{
    return matrix->start != NULL ? lines : mcud_run_end(matrix->tensor, line, lines);
}

static inline const void *mcud_matrix_line(const mcud_matrix *matrix, int32_t index)
{
    if (matrix->start != NULL) {
        return matrix->start + index * matrix->pitch;
    }
    return (const uint8_t *)mcud_row(matrix->tensor, index) + matrix->offset;
}

#endif
