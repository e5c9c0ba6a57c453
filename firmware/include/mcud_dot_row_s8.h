/* One pixel times int8 weights, read where it is: for outputs of a single pixel.
 *
 * Four channels are summed at a time. Weights are packed for that, each row of the input on its own:
 * [four channels][row][group of 4 values of the row][channel of the four][4], with 0 behind the row and behind
 * the last channel.
 */
#ifndef MCUD_DOT_ROW_S8_H
#define MCUD_DOT_ROW_S8_H

#include "mcud_dot_s8.h"

/* Adds the products of x[values] and four channels' weights for it; the weights behind them. */
static inline const int32_t *mcud_dot_row_s8(const int8_t *x, const int32_t *w, uint32_t values, int32_t sums[4])
{
    const uint32_t groups = values / 4;
    w = mcud_dot_1x4(x, w, (int32_t)groups, sums);
    if (values % 4 != 0) {
        int8_t tail[4] = {0, 0, 0, 0};
        for (uint32_t i = 0; i < values % 4; i++) {
            tail[i] = x[4 * groups + i];
        }
        w = mcud_dot_1x4(tail, w, 1, sums);
    }
    return w;
}

/* Requantises the sums of four channels to y[4]. */
static inline void mcud_four_results_s8(const mcud_channels_s8 *to, const int32_t *multipliers, int32_t sums[4],
                                        int8_t *y)
{
    if (to->left != 0) {
        sums[0] = mcud_scale_up(sums[0], to->left);
        sums[1] = mcud_scale_up(sums[1], to->left);
        sums[2] = mcud_scale_up(sums[2], to->left);
        sums[3] = mcud_scale_up(sums[3], to->left);
    }
    y[0] = mcud_requantize_s8(sums[0], multipliers[0], to->zero_point);
    y[1] = mcud_requantize_s8(sums[1], multipliers[1], to->zero_point);
    y[2] = mcud_requantize_s8(sums[2], multipliers[2], to->zero_point);
    y[3] = mcud_requantize_s8(sums[3], multipliers[3], to->zero_point);
}

#endif
