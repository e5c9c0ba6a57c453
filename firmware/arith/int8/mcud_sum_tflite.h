/* Sums of two int8 values that are rounded as by TFLite's reference kernels, if one operand has the larger scale: its
 * share is exact, and is half of its value at 2^MCUD_SUM_FRACTION. The other one is scaled and rounded as the sum is. */
#ifndef MCUD_SUM_TFLITE_H
#define MCUD_SUM_TFLITE_H

#include "mcud_simd.h"

enum { MCUD_SUM_FRACTION = 20 };

typedef struct {
    int32_t fraction; /* of the other operand, and what is added then */
    int32_t constant;
    int32_t multiplier;
    int32_t half; /* and the zero point of the exact operand */
    int32_t shift;
    int32_t sum_multiplier;
    int32_t sum_half; /* and that of the output */
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
    const mcud_exact_sum by = *how; /* a store to out may not change it */
    const int32_t factor = (int32_t)1 << by.fraction;
    for (const int8_t *const end = out + count; out < end; out++) {
        const int32_t scaled = mcud_round_twice(*other++ * factor + by.constant, by.multiplier, by.half, by.shift);
        const int32_t sum = *exact++ * ((int32_t)1 << (MCUD_SUM_FRACTION - 1)) + scaled;
        *out = mcud_saturate_s8(mcud_round_twice(sum, by.sum_multiplier, by.sum_half, by.sum_shift));
    }
}

#endif

#endif
