/* Requantisation. This file alone states its rounding.
 *
 *   q = clamp(zero_point + floor((acc * multiplier + 2^(shift-1)) / 2^shift), low, high)
 *
 * with the product exact in 64 bits: acc * (multiplier / 2^shift), rounded half up. The real scale s = input_scale *
 * weight_scale / output_scale is stored as multiplier = round(s * 2^shift). The shift is 32 if the multiplier then has
 * at least 16 bits and fits an int32_t: one instruction (SMMLAR) then suffices on cores with the DSP extension.
 */
#ifndef MCUD_QUANT_H
#define MCUD_QUANT_H

#include <stdint.h>

/* low <= high */
static inline int32_t mcud_clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* mcud_scale_32 is the common case of mcud_scale, for cores on which compilers make slow code of its C. */
#if defined(__thumb__) && !defined(__thumb2__)
#include "mcud_scale_thumb.h"
#elif defined(__GNUC__) && (defined(__riscv_mul) || (defined(__thumb2__) && !defined(__ARM_FEATURE_DSP)))
#include "mcud_scale_words.h"
#endif

/* 1 <= shift <= 62; the rounded product must fit an int32_t, which the code generator has checked. */
static inline int32_t mcud_scale(int32_t acc, int32_t multiplier, int32_t shift)
{
#if defined(MCUD_SCALE_32)
    if (shift == 32) {
        return mcud_scale_32(acc, multiplier);
    }
#endif
    const int64_t product = (int64_t)acc * multiplier;
    if (shift == 32) { /* the common case: no 64-bit shifts */
        return (int32_t)((product + ((int64_t)1 << 31)) >> 32);
    }
    if (shift > 32) { /* the lower half does not change the result */
        const int32_t high = (int32_t)(product >> 32);
        return (high + ((int32_t)1 << (shift - 33))) >> (shift - 32);
    }
    return (int32_t)((product + ((int64_t)1 << (shift - 1))) >> shift);
}

/* As TFLite's reference kernels: acc * 2^exponent * multiplier / 2^31, rounded to a whole number (half up), then
 * divided by 2^-exponent if the exponent is negative and rounded again (half away from zero). 2^30 <= multiplier, or
 * it is 0; -31 <= exponent <= 30; acc * 2^exponent must fit an int32_t. */
static inline int32_t mcud_scale_twice(int32_t acc, int32_t multiplier, int32_t exponent)
{
    if (exponent >= 0) {
        const int64_t product = (int64_t)(int32_t)((uint32_t)acc << exponent) * multiplier;
        return (int32_t)((product + ((int64_t)1 << 30)) >> 31);
    }
    const int32_t once = (int32_t)(((int64_t)acc * multiplier + ((int64_t)1 << 30)) >> 31);
    const int32_t twofold = (once + (once >> 31)) >> (-exponent - 1); /* moves negative ties below the tie */
    return (twofold + 1) >> 1;
}

/* mcud_scale, but a tie goes to the even result: for means, which often are ties. */
static inline int32_t mcud_scale_even(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int64_t product = (int64_t)acc * multiplier;
    if (shift == 32) { /* the common case */
        return (int32_t)((product + INT32_MAX + ((product >> 32) & 1)) >> 32);
    }
    const int64_t odd = (product >> shift) & 1;
    return (int32_t)((product + ((int64_t)1 << (shift - 1)) - 1 + odd) >> shift);
}

/* sum / 2^shift, a tie to the even result; 1 <= shift <= 30 and |sum| + 2^shift < 2^31. */
static inline int32_t mcud_round_even(int32_t sum, int32_t shift)
{
    const int32_t below_half = ((int32_t)1 << (shift - 1)) - 1;
    const int32_t odd = (sum >> shift) & 1;
    return (sum + below_half + odd) >> shift;
}

#endif
