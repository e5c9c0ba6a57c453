/* Requantisation of sums of 16-bit values times 8-bit weights, which take up to 48 bits.
 *
 *   q = clamp(floor((sum * multiplier + 2^(shift-1)) / 2^shift), low, high)
 *
 * with the product exact: halves round up, or away from zero. The real scale is multiplier / 2^shift, with a multiplier
 * of 2^30 and more; scales of 0.25 and more are halved until they are less, and the sums doubled as often.
 */
#ifndef MCUD_QUANT_S16_H
#define MCUD_QUANT_S16_H

#include "mcud_params.h"
#include "mcud_quant.h"

/* The product by halves, without the lower 32 bits, which decide nothing; 33 <= shift <= 94, multiplier >= 0. */
static inline int64_t mcud_scale_wide(int64_t sum, int32_t multiplier, int32_t shift)
{
    const uint64_t low = (uint64_t)(uint32_t)sum * (uint32_t)multiplier;
    const int64_t upper = (sum >> 32) * multiplier + (int64_t)(low >> 32);
    return (upper + ((int64_t)1 << (shift - 33))) >> (shift - 32);
}

/* Of a negative sum the product is negated twice, so that halves round away from zero. */
static inline int64_t mcud_scale_away(int64_t sum, int32_t multiplier, int32_t shift)
{
    return sum < 0 ? -mcud_scale_wide(-sum, multiplier, shift) : mcud_scale_wide(sum, multiplier, shift);
}

/* A result of one channel; the bias is two words, the lower one first. */
static inline int16_t mcud_finish_s16(int64_t sum, int32_t multiplier, int32_t shift, const mcud_wide_quant *quant,
                                      const mcud_act_s16 *act)
{
    int64_t result = 0;
    if (quant->ties == MCUD_TIES_UP) {
        result = mcud_scale_wide(sum * ((int64_t)1 << quant->left_shift), multiplier, shift);
    } else if (quant->ties == MCUD_TIES_AWAY) {
        result = mcud_scale_away(sum * ((int64_t)1 << quant->left_shift), multiplier, shift);
    } else {
        result = mcud_scale_twice((int32_t)sum, multiplier, shift);
    }
    return (int16_t)(result < act->min ? act->min : (result > act->max ? act->max : result));
}

#endif
