/* Requantisation of sums of 16-bit values times 8-bit weights, which take up to 32 bits, or up to 62.
 *
 *   q = clamp(floor((sum * multiplier + 2^(shift-1)) / 2^shift), low, high)
 *
 * with the product exact: halves round up, or away from zero. The real scale is multiplier / 2^shift, with a multiplier
 * of 2^30 and more; scales of 0.25 and more are halved until they are less, and the sums are doubled the same number of
 * times.
 */
#ifndef MCUD_QUANT_S16_H
#define MCUD_QUANT_S16_H

#include "mcud_params.h"
#include "mcud_quant.h"

/* Multiplies the sum by halves and drops the lowest 32 bits, which do not change the result; 33 <= shift <= 94,
 * multiplier >= 0. */
static inline int64_t mcud_scale_wide(int64_t sum, int32_t multiplier, int32_t shift)
{
    const uint64_t low = (uint64_t)(uint32_t)sum * (uint32_t)multiplier;
    const int64_t upper = (sum >> 32) * multiplier + (int64_t)(low >> 32);
    return (upper + ((int64_t)1 << (shift - 33))) >> (shift - 32);
}

/* Negates a negative sum and its result, so that halves round away from zero. */
static inline int64_t mcud_scale_away(int64_t sum, int32_t multiplier, int32_t shift)
{
    return sum < 0 ? -mcud_scale_wide(-sum, multiplier, shift) : mcud_scale_wide(sum, multiplier, shift);
}

/* Scales a sum of 32 bits; records have the shift less 33, 0..29. */
static inline int32_t mcud_scale_narrow(int32_t sum, int32_t multiplier, int32_t shift)
{
    const int32_t upper = (int32_t)(((int64_t)sum * multiplier) >> 32);
    return ((upper >> shift) + 1) >> 1;
}

/* Scales a sum of 32 bits and rounds as `ties` states; if it rounds twice, `shift` is an exponent. */
static inline int32_t mcud_scale_by_ties(int32_t sum, int32_t multiplier, int32_t shift, int32_t ties)
{
    if (ties == MCUD_TIES_UP) {
        return mcud_scale_narrow(sum, multiplier, shift);
    }
    if (ties == MCUD_TIES_TWICE) {
        return mcud_scale_twice(sum, multiplier, shift);
    }
    return sum < 0 ? -mcud_scale_narrow(-sum, multiplier, shift) : mcud_scale_narrow(sum, multiplier, shift);
}

/* Writes y[count] from the sums of four channels, of 32 bits; `scales` has their multipliers, then their shifts. */
static inline void mcud_finish_s16(const int32_t sums[4], const int32_t *scales, int32_t count,
                                   const mcud_wide_quant *quant, const mcud_act_s16 *act, int16_t *y)
{
    const int32_t low = act->min;
    const int32_t high = act->max;
    if (quant->ties == MCUD_TIES_UP && count >= 4) {
        y[0] = (int16_t)mcud_clamp(mcud_scale_narrow(sums[0], scales[0], scales[4]), low, high);
        y[1] = (int16_t)mcud_clamp(mcud_scale_narrow(sums[1], scales[1], scales[5]), low, high);
        y[2] = (int16_t)mcud_clamp(mcud_scale_narrow(sums[2], scales[2], scales[6]), low, high);
        y[3] = (int16_t)mcud_clamp(mcud_scale_narrow(sums[3], scales[3], scales[7]), low, high);
        return;
    }
    for (int32_t i = 0; i < count && i < 4; i++) {
        y[i] = (int16_t)mcud_clamp(mcud_scale_by_ties(sums[i], scales[i], scales[4 + i], quant->ties), low, high);
    }
}

/* The same from sums that have up to 62 bits after their left shift. */
static inline void mcud_finish_wide_s16(const int64_t sums[4], const int32_t *scales, int32_t count,
                                        const mcud_wide_quant *quant, const mcud_act_s16 *act, int16_t *y)
{
    for (int32_t i = 0; i < count && i < 4; i++) {
        const int64_t sum = sums[i] * ((int64_t)1 << quant->left_shift);
        const int64_t result = quant->ties == MCUD_TIES_UP ? mcud_scale_wide(sum, scales[i], scales[4 + i])
                                                           : mcud_scale_away(sum, scales[i], scales[4 + i]);
        y[i] = (int16_t)(result < act->min ? act->min : (result > act->max ? act->max : result));
    }
}

#endif
