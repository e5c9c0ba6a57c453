/* Writes rows into a state that keeps its memory from one run to the next.
 *
 * in       int32_t [count] positions, unless they are constant; [blocks][count][...] rows, in one row of the
 *          tensor; [blocks][rows][...] the state, in one row of the tensor
 * out      the state after the run; in the same memory, only the rows are written
 *
 * A negative position counts from the end; a row whose position is outside is not written.
 */
#ifndef MCUD_WRITE_ROWS_H
#define MCUD_WRITE_ROWS_H

#include "mcud.h"

typedef struct {
    const int32_t *positions; /* or NULL */
    int32_t count;
    int32_t blocks;
    int32_t rows;
    int32_t row_bytes;
} mcud_write_rows_params;

mcud_kernel mcud_write_rows;

#endif
