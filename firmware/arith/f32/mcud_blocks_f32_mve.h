/* mcud_blocks_f32.h for Arm cores whose vectors hold floats: Cortex-M55. See mcud_simd_f32_mve.h. */
#ifndef MCUD_BLOCKS_F32_MVE_H
#define MCUD_BLOCKS_F32_MVE_H

#include <arm_mve.h>

/* A lane shifts its integer to the top of the word, and back with its sign. */
static inline void mcud_add_pairs_1x4_s4(const float *x, const uint32_t *w, int32_t values, float sums[4])
{
    const int32x4_t to_top = vaddq_n_s32(vmulq_n_s32((int32x4_t)vidupq_n_u32(0, 1), -4), 28);
    const int32x4_t next_to_top = vsubq_n_s32(to_top, 16);
    float32x4_t a = vld1q_f32(sums);
    for (const float *const end = x + values; x != end; x += 2) {
        const int32x4_t eight = vdupq_n_s32((int32_t)*w++);
        const int32x4_t first = vshrq_n_s32(vshlq_s32(eight, to_top), 28);
        const int32x4_t second = vshrq_n_s32(vshlq_s32(eight, next_to_top), 28);
        a = vfmaq_n_f32(a, vcvtq_f32_s32(first), x[0]);
        a = vfmaq_n_f32(a, vcvtq_f32_s32(second), x[1]);
    }
    vst1q_f32(sums, a);
}

#endif
