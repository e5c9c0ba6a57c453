/* The common part of conv2d_s8_full_rvv and conv2d_s8_by_rows_rvv. */
#ifndef CONV2D_S8_ROWS_RVV_H
#define CONV2D_S8_ROWS_RVV_H

#include "mcud.h"
#include "mcud_clip_s8.h"
#include "mcud_lanes_s8.h"

/* Adds the products of rows [first_row, end_row) of `row_values` values to sums[channels], which begin as the
 * biases. */
static inline void add_rows(const mcud_op *op, const mcud_vector_channels *to, int32_t first_row, int32_t end_row,
                            int32_t row_values)
{
    int32_t *const sums = mcud_row(op->scratch, first_row);
    const int8_t *const weights = (const int8_t *)(to->records + (1 + MCUD_FACTORS) * to->channels);
    if (first_row == 0) {
        mcud_vector_copy(sums, to->records, to->channels * (int32_t)sizeof *sums);
    }
    for (int32_t row = first_row; row < end_row;) {
        const int32_t end = mcud_run_end(op->in[0], row, end_row);
        const int8_t *w = weights + row * row_values * to->channels;
        mcud_lanes_add(to, mcud_row(op->in[0], row), (end - row) * row_values, w, sums);
        row = end;
    }
}

#endif
