/* mcud_simd_s8w.h for Arm cores whose vectors hold floats: Cortex-M55. See mcud_simd_f32_mve.h. */
#ifndef MCUD_SIMD_S8W_MVE_H
#define MCUD_SIMD_S8W_MVE_H

#include <arm_mve.h>

/* The weights of a value and four channels. */
static inline float32x4_t mcud_widened_s8w(const int8_t w[4], float32x4_t scale)
{
    return vmulq_f32(vcvtq_f32_s32(vldrbq_s32(w)), scale);
}

/* x[values], x[step + values], ..., w[values][4] */
static inline void mcud_add_4x4_s8w(const float *x, int32_t step, const int8_t *w, const float scale[4],
                                    int32_t values, float sums[16])
{
    const float *x1 = x + step;
    const float *x2 = x1 + step;
    const float *x3 = x2 + step;
    const float32x4_t by = vld1q_f32(scale);
    float32x4_t a = vld1q_f32(sums);
    float32x4_t b = vld1q_f32(sums + 4);
    float32x4_t c = vld1q_f32(sums + 8);
    float32x4_t d = vld1q_f32(sums + 12);
    for (int32_t i = 0; i < values; i++, w += 4) {
        const float32x4_t weights = mcud_widened_s8w(w, by);
        a = vfmaq_n_f32(a, weights, x[i]);
        b = vfmaq_n_f32(b, weights, x1[i]);
        c = vfmaq_n_f32(c, weights, x2[i]);
        d = vfmaq_n_f32(d, weights, x3[i]);
    }
    vst1q_f32(sums, a);
    vst1q_f32(sums + 4, b);
    vst1q_f32(sums + 8, c);
    vst1q_f32(sums + 12, d);
}

/* x[values], w[values][4] */
static inline void mcud_add_1x4_s8w(const float *x, const int8_t *w, const float scale[4], int32_t values,
                                    float sums[4])
{
    const float32x4_t by = vld1q_f32(scale);
    float32x4_t a = vld1q_f32(sums);
    for (int32_t i = 0; i < values; i++, w += 4) {
        a = vfmaq_n_f32(a, mcud_widened_s8w(w, by), x[i]);
    }
    vst1q_f32(sums, a);
}

/* x[values], w[2][values][4] */
static inline void mcud_add_1x8_s8w(const float *x, const int8_t *w, const float scale[8], int32_t values,
                                    float sums[8])
{
    const int8_t *next = w + 4 * values;
    const float32x4_t by = vld1q_f32(scale);
    const float32x4_t next_by = vld1q_f32(scale + 4);
    float32x4_t a = vld1q_f32(sums);
    float32x4_t b = vld1q_f32(sums + 4);
    for (int32_t i = 0; i < values; i++, w += 4, next += 4) {
        a = vfmaq_n_f32(a, mcud_widened_s8w(w, by), x[i]);
        b = vfmaq_n_f32(b, mcud_widened_s8w(next, next_by), x[i]);
    }
    vst1q_f32(sums, a);
    vst1q_f32(sums + 4, b);
}

#endif
