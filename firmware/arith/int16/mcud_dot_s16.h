/* 16-bit values times int8 weights: the core of the convolutions of int16 activations.
 *
 * A record is the constants of four output channels: int32_t biases, the lower words of all four, then the upper
 * ones; weights [groups][4][4], a word for four values of a channel; multipliers; shifts. A group is four values along
 * the depth; weights after the depth are 0.
 *
 *   mcud_dot_fours_s16  sums[4] += x[4 * groups] by the weights of four channels; returns what follows them
 *   mcud_dot_taps_s16   sums[4] += four channels of a depthwise window; weights are those of mcud_record_taps
 */
#ifndef MCUD_DOT_S16_H
#define MCUD_DOT_S16_H

#include "mcud_quant_s16.h"

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_dot_s16_dsp.h"
#else
#include "mcud_dot_s16_c.h"
#endif

/* The bias of channel `i` of a record. */
static inline int64_t mcud_bias_s16(const int32_t *record, int32_t i)
{
    return (int64_t)record[4 + i] * ((int64_t)1 << 32) + (uint32_t)record[i];
}

/* y[count] of the sums of a record, whose multipliers and shifts follow its weights. */
static inline void mcud_finish_fours_s16(const int64_t sums[4], const int32_t *scales, int32_t count,
                                         const mcud_wide_quant *quant, const mcud_act_s16 *act, int16_t *y)
{
    for (int32_t i = 0; i < count && i < 4; i++) {
        y[i] = mcud_finish_s16(sums[i], scales[i], scales[4 + i], quant, act);
    }
}

#endif
