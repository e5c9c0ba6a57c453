/* Sums of two int8 values, rounded as in TFLite's reference kernels, if one operand has the larger scale. Its share is
 * exact: half of its value times 2^MCUD_SUM_FRACTION. The other operand is scaled and rounded as the sum is. */
#ifndef MCUD_SUM_TFLITE_H
#define MCUD_SUM_TFLITE_H

#include "mcud_simd.h"

enum { MCUD_SUM_FRACTION = 20 };

typedef struct {
    int32_t fraction; /* fraction bits of the other operand; `constant` is added then */
    int32_t constant;
    int32_t multiplier;
    int32_t half; /* half of 2^shift, plus a term of the exact operand's zero point */
    int32_t shift;
    int32_t sum_multiplier;
    int32_t sum_half; /* half of 2^sum_shift, plus a term of the output's zero point */
    int32_t sum_shift;
} mcud_exact_sum;

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_sum_tflite_mve.h"
#else

/* (value * multiplier / 2^31, rounded half up, + half) / 2^shift, whose ties go away from zero. */
static inline int32_t mcud_round_twice(int32_t value, int32_t multiplier, int32_t half, int32_t shift)
{
    const int32_t once = mcud_scale_once(value, (int32_t)((uint32_t)multiplier << 1));
    return (once + (once >> 31) + half) >> shift;
}

/* out[count] = exact[count] + other[count], from -128 to 127 */
static inline void mcud_add_exact(const mcud_exact_sum *how, const int8_t *exact, const int8_t *other, int8_t *out,
                                  int32_t count)
{
    const mcud_exact_sum by = *how; /* a copy, since the compiler must expect a store to out to change *how */
    const int32_t factor = (int32_t)1 << by.fraction;
    for (const int8_t *const end = out + count; out < end; out++) {
        const int32_t scaled = mcud_round_twice(*other++ * factor + by.constant, by.multiplier, by.half, by.shift);
        const int32_t sum = *exact++ * ((int32_t)1 << (MCUD_SUM_FRACTION - 1)) + scaled;
        *out = mcud_saturate_s8(mcud_round_twice(sum, by.sum_multiplier, by.sum_half, by.sum_shift));
    }
}

#endif

#endif
