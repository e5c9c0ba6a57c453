/* Products of the gradient and the input of pixels, summed over `cols->count` of them, float32, by the instruction set
 * that mcud_simd_f32.h has chosen. Pixels of the gradient are cols->x_pitch values apart, those of the input
 * cols->w_pitch:
 *
 *   mcud_add_outer_4x4_f32   4 channels of the gradient by 4 of the input
 *   mcud_add_outer_16x1_f32  16 channels of the gradient by 1 of the input: sums[16]
 *   mcud_add_inner_8_f32     8 channels of the gradient, each by the same channel of the input: sums[8]
 *
 * The products are added in order of the pixels, each by mcud_mac_f32(). */
#ifndef MCUD_OUTER_F32_H
#define MCUD_OUTER_F32_H

#include "mcud_lines_f32.h"

#if defined(MCUD_SIMD_F32_VFP_H)

/* Sums of a channel of the gradient are contiguous; sums of the next channel are `pitch` values later.
 * 22 instructions for 16 products. */
static inline void mcud_add_outer_4x4_f32(const float *g, const float *x, const mcud_terms_f32 *cols, float *sums,
                                          int32_t pitch)
{
    int32_t left = cols->count;
    float *line = sums;
    if (left <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[line], {s0-s3}\n\t"
        "add %[line], %[line], %[pitch], lsl #2\n\t"
        "vldmia %[line], {s4-s7}\n\t"
        "add %[line], %[line], %[pitch], lsl #2\n\t"
        "vldmia %[line], {s8-s11}\n\t"
        "add %[line], %[line], %[pitch], lsl #2\n\t"
        "vldmia %[line], {s12-s15}\n"
        "1:\n\t"
        "vldmia %[x], {s16-s19}\n\t"
        "vldmia %[g], {s20-s23}\n\t"
        "add %[x], %[x], %[x_pitch], lsl #2\n\t"
        "add %[g], %[g], %[g_pitch], lsl #2\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s20"), MCUD_S16, MCUD_S24)
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s21"), MCUD_S16, MCUD_S24)
        MCUD_MAC4_F32(MCUD_S8, MCUD_SAME("s22"), MCUD_S16, MCUD_S24)
        MCUD_MAC4_F32(MCUD_S12, MCUD_SAME("s23"), MCUD_S16, MCUD_S24)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[line], {s12-s15}\n\t"
        "sub %[line], %[line], %[pitch], lsl #2\n\t"
        "vstmia %[line], {s8-s11}\n\t"
        "sub %[line], %[line], %[pitch], lsl #2\n\t"
        "vstmia %[line], {s4-s7}\n\t"
        "sub %[line], %[line], %[pitch], lsl #2\n\t"
        "vstmia %[line], {s0-s3}\n\t"
        : [g] "+r"(g), [x] "+r"(x), [left] "+r"(left), [line] "+r"(line)
        : [pitch] "r"(pitch), [g_pitch] "r"(cols->x_pitch), [x_pitch] "r"(cols->w_pitch)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* 24 instructions for 16 products. */
static inline void mcud_add_outer_16x1_f32(const float *g, const float *x, const mcud_terms_f32 *cols, float sums[16])
{
    int32_t left = cols->count;
    if (left <= 0) {
        return;
    }
    const int32_t to_next = cols->x_pitch - 8;
    __asm__ volatile(
        "vldmia %[sums], {s0-s15}\n"
        "1:\n\t"
        "vldr s24, [%[x]]\n\t"
        "vldmia %[g]!, {s16-s23}\n\t"
        "add %[x], %[x], %[x_pitch], lsl #2\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_S16, MCUD_SAME("s24"), MCUD_S16)
        MCUD_MAC4_F32(MCUD_S4, MCUD_S20, MCUD_SAME("s24"), MCUD_S20)
        "vldmia %[g], {s16-s23}\n\t"
        "add %[g], %[g], %[to_next], lsl #2\n\t"
        MCUD_MAC4_F32(MCUD_S8, MCUD_S16, MCUD_SAME("s24"), MCUD_S16)
        MCUD_MAC4_F32(MCUD_S12, MCUD_S20, MCUD_SAME("s24"), MCUD_S20)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s15}\n\t"
        : [g] "+r"(g), [x] "+r"(x), [left] "+r"(left)
        : [sums] "r"(sums), [to_next] "r"(to_next), [x_pitch] "r"(cols->w_pitch)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* 14 instructions for 8 products. */
static inline void mcud_add_inner_8_f32(const float *g, const float *x, const mcud_terms_f32 *cols, float sums[8])
{
    int32_t left = cols->count;
    if (left <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[sums], {s0-s7}\n"
        "1:\n\t"
        "vldmia %[x], {s8-s15}\n\t"
        "vldmia %[g], {s16-s23}\n\t"
        "add %[x], %[x], %[x_pitch], lsl #2\n\t"
        "add %[g], %[g], %[g_pitch], lsl #2\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_S16, MCUD_S8, MCUD_S8)
        MCUD_MAC4_F32(MCUD_S4, MCUD_S20, MCUD_S12, MCUD_S12)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s7}\n\t"
        : [g] "+r"(g), [x] "+r"(x), [left] "+r"(left)
        : [sums] "r"(sums), [g_pitch] "r"(cols->x_pitch), [x_pitch] "r"(cols->w_pitch)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#else

/* Sums of a channel of the gradient are contiguous; sums of the next channel are `pitch` values later. */
static inline void mcud_add_outer_4x4_f32(const float *g, const float *x, const mcud_terms_f32 *cols, float *sums,
                                          int32_t pitch)
{
    float *const line1 = sums + pitch;
    float *const line2 = line1 + pitch;
    float *const line3 = line2 + pitch;
    float a0 = sums[0], a1 = sums[1], a2 = sums[2], a3 = sums[3];
    float b0 = line1[0], b1 = line1[1], b2 = line1[2], b3 = line1[3];
    float c0 = line2[0], c1 = line2[1], c2 = line2[2], c3 = line2[3];
    float d0 = line3[0], d1 = line3[1], d2 = line3[2], d3 = line3[3];
    for (int32_t col = 0; col < cols->count; col++) {
        const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
        const float g0 = g[0], g1 = g[1], g2 = g[2], g3 = g[3];
        a0 = mcud_mac_f32(g0, x0, a0);
        a1 = mcud_mac_f32(g0, x1, a1);
        a2 = mcud_mac_f32(g0, x2, a2);
        a3 = mcud_mac_f32(g0, x3, a3);
        b0 = mcud_mac_f32(g1, x0, b0);
        b1 = mcud_mac_f32(g1, x1, b1);
        b2 = mcud_mac_f32(g1, x2, b2);
        b3 = mcud_mac_f32(g1, x3, b3);
        c0 = mcud_mac_f32(g2, x0, c0);
        c1 = mcud_mac_f32(g2, x1, c1);
        c2 = mcud_mac_f32(g2, x2, c2);
        c3 = mcud_mac_f32(g2, x3, c3);
        d0 = mcud_mac_f32(g3, x0, d0);
        d1 = mcud_mac_f32(g3, x1, d1);
        d2 = mcud_mac_f32(g3, x2, d2);
        d3 = mcud_mac_f32(g3, x3, d3);
        x += cols->w_pitch;
        g += cols->x_pitch;
    }
    sums[0] = a0, sums[1] = a1, sums[2] = a2, sums[3] = a3;
    line1[0] = b0, line1[1] = b1, line1[2] = b2, line1[3] = b3;
    line2[0] = c0, line2[1] = c1, line2[2] = c2, line2[3] = c3;
    line3[0] = d0, line3[1] = d1, line3[2] = d2, line3[3] = d3;
}

static inline void mcud_add_outer_16x1_f32(const float *g, const float *x, const mcud_terms_f32 *cols, float sums[16])
{
    const mcud_terms_f32 crossed = {cols->count, cols->w_pitch, cols->x_pitch};
    for (int32_t k = 0; k < 16; k += 4) {
        mcud_add_terms_4_f32(x, g + k, &crossed, sums + k);
    }
}

static inline void mcud_add_inner_8_f32(const float *g, const float *x, const mcud_terms_f32 *cols, float sums[8])
{
    for (int32_t half = 0; half < 8; half += 4, g += 4, x += 4, sums += 4) {
        const float *from = x;
        const float *by = g;
        float a = sums[0], b = sums[1], c = sums[2], d = sums[3];
        for (int32_t col = 0; col < cols->count; col++, from += cols->w_pitch, by += cols->x_pitch) {
            a = mcud_mac_f32(by[0], from[0], a);
            b = mcud_mac_f32(by[1], from[1], b);
            c = mcud_mac_f32(by[2], from[2], c);
            d = mcud_mac_f32(by[3], from[3], d);
        }
        sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
    }
}

#endif

#endif
