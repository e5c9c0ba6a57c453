/* The blocks of the M-profile Vector Extension by intrinsics, for compilers that do not accept them in assembler: see
 * mcud_compiler.h. The functions are those of mcud_taps_mve.h, and give the same bits. */
#ifndef MCUD_BLOCKS_MVE_H
#define MCUD_BLOCKS_MVE_H

#include <arm_mve.h>

#include "mcud_simd.h"

/* The sums of 16 channels: each vector has every fourth channel, from channel 0, 2, 1 or 3 on. */
typedef struct {
    int32x4_t a;
    int32x4_t b;
    int32x4_t c;
    int32x4_t d;
} mcud_vector_sums;

/* Adds products of even and of odd channels. */
MCUD_BLOCK void mcud_vector_widen(mcud_vector_sums *sums, int16x8_t even, int16x8_t odd)
{
    sums->a = vaddq_s32(sums->a, vmovlbq_s16(even));
    sums->b = vaddq_s32(sums->b, vmovltq_s16(even));
    sums->c = vaddq_s32(sums->c, vmovlbq_s16(odd));
    sums->d = vaddq_s32(sums->d, vmovltq_s16(odd));
}

/* The results of sums, whose multipliers are scales[16]. */
MCUD_BLOCK int8x16_t mcud_vector_results(mcud_vector_sums sums, const int32_t *scales, int32_t left, int32_t zero_point)
{
#if MCUD_FACTORS == 2
    sums.a = vqrdmulhq_s32(sums.a, vldrwq_s32(scales));
    sums.b = vqrdmulhq_s32(sums.b, vldrwq_s32(scales + 4));
    sums.c = vqrdmulhq_s32(sums.c, vldrwq_s32(scales + 8));
    sums.d = vqrdmulhq_s32(sums.d, vldrwq_s32(scales + 12));
    scales += 16;
#endif
    if (left != 0) {
        sums.a = vqshlq_r_s32(sums.a, left);
        sums.b = vqshlq_r_s32(sums.b, left);
        sums.c = vqshlq_r_s32(sums.c, left);
        sums.d = vqshlq_r_s32(sums.d, left);
    }
    int16x8_t even = vqmovnbq_s32(vdupq_n_s16(0), vrmulhq_s32(sums.a, vldrwq_s32(scales)));
    even = vqmovntq_s32(even, vrmulhq_s32(sums.b, vldrwq_s32(scales + 4)));
    int16x8_t odd = vqmovnbq_s32(vdupq_n_s16(0), vrmulhq_s32(sums.c, vldrwq_s32(scales + 8)));
    odd = vqmovntq_s32(odd, vrmulhq_s32(sums.d, vldrwq_s32(scales + 12)));
    const int8x16_t all = vqmovnbq_s16(vdupq_n_s8(0), vqaddq_n_s16(even, (int16_t)zero_point));
    return vqmovntq_s16(all, vqaddq_n_s16(odd, (int16_t)zero_point));
}

/* See mcud_taps_mve.h. */
static inline void mcud_vector_taps(const int8_t *const *taps, int32_t tap_count, int32_t at, int32_t step,
                                    int32_t windows, const int32_t *records, const mcud_finish_s8 *finish, int8_t *y,
                                    int32_t channels)
{
    const int32_t left = finish->left;
    const int32_t zero_point = finish->zero_point;
    for (; windows > 0; windows--, at += step - channels) {
        const int32_t *w = records;
        for (int32_t rest = channels; rest > 0; rest -= 16, w += 16 * MCUD_FACTORS) {
            const mve_pred16_t some = vctp8q((uint32_t)rest);
            const int8_t *const *tap = taps;
            mcud_vector_sums sums = {vldrwq_s32(w), vldrwq_s32(w + 4), vldrwq_s32(w + 8), vldrwq_s32(w + 12)};
            w += 16;
            for (int32_t pairs = tap_count / 2; pairs > 0; pairs--, tap += 2, w += 8) {
                const int8x16_t x = vldrbq_z_s8(tap[0] + at, some);
                const int8x16_t z = vldrbq_z_s8(tap[1] + at, some);
                const int8x16_t x_by = vldrbq_s8((const int8_t *)w);
                const int8x16_t z_by = vldrbq_s8((const int8_t *)(w + 4));
                mcud_vector_widen(&sums, vaddq_s16(vmullbq_int_s8(x, x_by), vmullbq_int_s8(z, z_by)),
                                  vaddq_s16(vmulltq_int_s8(x, x_by), vmulltq_int_s8(z, z_by)));
            }
            if (tap_count % 2 != 0) {
                const int8x16_t x = vldrbq_z_s8(tap[0] + at, some);
                const int8x16_t by = vldrbq_s8((const int8_t *)w);
                mcud_vector_widen(&sums, vmullbq_int_s8(x, by), vmulltq_int_s8(x, by));
                w += 4;
            }
            vstrbq_p_s8(y, mcud_vector_results(sums, w, left, zero_point), some);
            const int32_t made = rest < 16 ? rest : 16;
            y += made;
            at += made;
        }
    }
}

#endif
