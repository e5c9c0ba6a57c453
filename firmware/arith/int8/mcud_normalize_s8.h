/* The sums and the results of layer_norm_s8. */
#ifndef MCUD_NORMALIZE_S8_H
#define MCUD_NORMALIZE_S8_H

#include "mcud_simd.h"

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include <arm_mve.h>
#endif

/* The factors for z of a group's values: z = (value * count - centre) * 2^left * multiplier / 2^32. */
typedef struct {
    int32_t centre;
    int32_t left;
    int32_t multiplier;
} mcud_normal;

typedef struct {
    int32_t values;
    int32_t squares;
} mcud_sums_s8;

static inline mcud_sums_s8 mcud_sums_of(const int8_t *in, int32_t count)
{
    mcud_sums_s8 sums = {0, 0};
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
    for (; count > 0; count -= 16, in += 16) {
        const int8x16_t x = vldrbq_z_s8(in, vctp8q((uint32_t)count));
        sums.values = vaddvaq_s8(sums.values, x);
        sums.squares = vmladavaq_s8(sums.squares, x, x);
    }
#else
    for (int32_t i = 0; i < count; i++) {
        sums.values += in[i];
        sums.squares += in[i] * in[i];
    }
#endif
    return sums;
}

static inline int32_t mcud_product_high(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* Computes out[count] from in[count] and factors[count][2]. */
static inline void mcud_normalize(const mcud_normal *by, const int8_t *in, const int32_t *factors, int32_t count,
                                  int32_t shift, int8_t *out)
{
    const uint32_t step = (uint32_t)count << by->left;
    const uint32_t centre = (uint32_t)by->centre << by->left;
    const int32_t *const end = factors + 2 * count;
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
    const int32x4_t multiplier = vdupq_n_s32(by->multiplier);
    for (; end - factors >= 8; factors += 8, in += 4, out += 4) {
        const int32x4_t value = vsubq_n_s32(vmulq_n_s32(vldrbq_s32(in), (int32_t)step), (int32_t)centre);
        const int32x4x2_t factor = vld2q_s32(factors);
        const int32x4_t product = vmulhq_s32(vmulhq_s32(value, multiplier), factor.val[0]);
        const int32x4_t y = vshlq_r_s32(vaddq_s32(product, factor.val[1]), -shift);
        const int16x8_t narrow = vqmovnbq_s32(vreinterpretq_s16_s32(y), y);
        vstrbq_s32(out, vreinterpretq_s32_s8(vqmovnbq_s16(vreinterpretq_s8_s16(narrow), narrow)));
    }
#endif
    for (; factors < end; factors += 2) {
        const int32_t value = *in++;
        const int32_t z = mcud_product_high((int32_t)(step * (uint32_t)value - centre), by->multiplier);
        *out++ = mcud_saturate_s8((mcud_product_high(z, factors[0]) + factors[1]) >> shift);
    }
}

#endif
