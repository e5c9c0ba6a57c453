/* Products of a gradient and packed weights, float32, by the instruction set that mcud_simd_f32.h has chosen:
 *
 *   mcud_add_back_4_f32    4 channels of a gradient to all values of a pixel, by one block of weights
 *
 * The products are added in order of the channels, each by mcud_mac_f32(). */
#ifndef MCUD_BACK_F32_H
#define MCUD_BACK_F32_H

#include "mcud_simd_f32.h"

#if defined(MCUD_SIMD_F32_MVE_H)

/* y[values] += w[values][4] . g[4], added in the order of g. A vector is four values. */
static inline void mcud_add_back_4_f32(const float g[4], const float *w, int32_t values, float *y)
{
    const float a = g[0];
    const float b = g[1];
    const float c = g[2];
    const float d = g[3];
    for (; values >= 4; values -= 4, w += 16, y += 4) {
        const float32x4x4_t by = vld4q_f32(w);
        float32x4_t sums = vfmaq_n_f32(vld1q_f32(y), by.val[0], a);
        sums = vfmaq_n_f32(sums, by.val[1], b);
        sums = vfmaq_n_f32(sums, by.val[2], c);
        vst1q_f32(y, vfmaq_n_f32(sums, by.val[3], d));
    }
    for (; values > 0; values--, w += 4, y++) {
        *y = mcud_mac_f32(d, w[3], mcud_mac_f32(c, w[2], mcud_mac_f32(b, w[1], mcud_mac_f32(a, w[0], *y))));
    }
}

#elif defined(MCUD_SIMD_F32_VFP_H)

/* One channel of the gradient by four values, whose weights are in every fourth register. */
#define MCUD_CHANNEL_BACK_F32(g, w0, w1, w2, w3)                                                             \
    MCUD_MAC4_F32(MCUD_S4, MCUD_SAME(g), w0, w1, w2, w3, w0, w1, w2, w3)

/* y[values] += w[values][4] . g[4], added in the order of g: 21 instructions for 16 products */
static inline void mcud_add_back_4_f32(const float g[4], const float *w, int32_t values, float *y)
{
    __asm__ volatile(
        "vldmia %[g], {s0-s3}\n\t"
        "subs %[left], %[left], #4\n\t"
        "blt 2f\n"
        "1:\n\t"
        "vldmia %[w]!, {s16-s31}\n\t"
        "vldmia %[y], {s4-s7}\n\t"
        MCUD_CHANNEL_BACK_F32("s0", "s16", "s20", "s24", "s28")
        MCUD_CHANNEL_BACK_F32("s1", "s17", "s21", "s25", "s29")
        MCUD_CHANNEL_BACK_F32("s2", "s18", "s22", "s26", "s30")
        MCUD_CHANNEL_BACK_F32("s3", "s19", "s23", "s27", "s31")
        "vstmia %[y]!, {s4-s7}\n\t"
        "subs %[left], %[left], #4\n\t"
        "bge 1b\n"
        "2:\n\t"
        "adds %[left], %[left], #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        "vldmia %[w]!, {s16-s19}\n\t"
        "vldr s4, [%[y]]\n\t"
        MCUD_MAC4_F32(MCUD_SAME("s4"), MCUD_S0, MCUD_S16, MCUD_S16)
        "vstmia %[y]!, {s4}\n\t"
        "subs %[left], %[left], #1\n\t"
        "bne 3b\n"
        "4:"
        : [w] "+r"(w), [y] "+r"(y), [left] "+r"(values)
        : [g] "r"(g)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#else

/* y[values] += w[values][4] . g[4], added in the order of g */
static inline void mcud_add_back_4_f32(const float g[4], const float *w, int32_t values, float *y)
{
    const float a = g[0];
    const float b = g[1];
    const float c = g[2];
    const float d = g[3];
    for (const float *const end = y + values; y != end; y++, w += 4) {
        *y = mcud_mac_f32(d, w[3], mcud_mac_f32(c, w[2], mcud_mac_f32(b, w[1], mcud_mac_f32(a, w[0], *y))));
    }
}

#endif

#endif
