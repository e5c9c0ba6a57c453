/* One pixel times int8 weights, read where it is: for outputs of a single pixel.
 *
 * Four channels are summed at a time. Constants are packed in the order of their use, one record for every four
 * channels, the missing ones of the last four being 0:
 *
 *   int32_t bias[4]                       with the input's zero point folded in
 *   int8_t  weights[rows][groups][4][4]   of each input row groups of four values, 0 behind the row
 *   int32_t multipliers[4]
 */
#ifndef MCUD_DOT_ROW_S8_H
#define MCUD_DOT_ROW_S8_H

#include "mcud_simd.h"

/* A row of the input. */
typedef struct {
    uint32_t groups; /* of four values */
    uint32_t tail;   /* values behind the groups, 0 to 3 */
} mcud_row_s8;

/* Adds the products of a row and four channels' weights for it; the weights behind them. */
static inline const int32_t *mcud_dot_row_s8(const mcud_row_s8 *row, const int8_t *x, const int32_t *w,
                                             int32_t sums[4])
{
    const int8_t *const ends[2] = {x + 4 * (row->groups & 3), x + 4 * row->groups};
    w = mcud_dot_1x4(x, ends, w, sums);
    if (row->tail != 0) {
        int8_t tail[4] = {0, 0, 0, 0};
        for (uint32_t i = 0; i < row->tail; i++) {
            tail[i] = ends[1][i];
        }
        w = mcud_group_1x4(tail, w, sums);
    }
    return w;
}

/* Requantises the sums of four channels to y[4]. */
static inline void mcud_four_results_s8(int32_t left, int32_t zero_point, const int32_t *multipliers,
                                        int32_t sums[4], int8_t *y)
{
    if (left != 0) {
        sums[0] = mcud_scale_up(sums[0], left);
        sums[1] = mcud_scale_up(sums[1], left);
        sums[2] = mcud_scale_up(sums[2], left);
        sums[3] = mcud_scale_up(sums[3], left);
    }
    y[0] = mcud_requantize_s8(sums[0], multipliers[0], zero_point);
    y[1] = mcud_requantize_s8(sums[1], multipliers[1], zero_point);
    y[2] = mcud_requantize_s8(sums[2], multipliers[2], zero_point);
    y[3] = mcud_requantize_s8(sums[3], multipliers[3], zero_point);
}

#endif
