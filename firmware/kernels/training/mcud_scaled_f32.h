/* Pixels of a gradient, each channel times its weight, added to pixels of a result, float32, by the instruction set
 * that mcud_simd_f32.h has chosen. Pixels of the gradient are columns->x_pitch values apart, those of the result
 * columns->w_pitch:
 *
 *   mcud_add_scaled_8_f32  eight channels
 *   mcud_add_scaled_1_f32  one channel
 *
 * Each product is added by mcud_mac_f32(). */
#ifndef MCUD_SCALED_F32_H
#define MCUD_SCALED_F32_H

#include "mcud_lines_f32.h"

static inline void mcud_add_scaled_1_f32(const float *g, float w, const mcud_terms_f32 *columns, float *y)
{
    for (int32_t i = 0; i < columns->count; i++, g += columns->x_pitch, y += columns->w_pitch) {
        *y = mcud_mac_f32(*g, w, *y);
    }
}

#if defined(MCUD_SIMD_F32_VFP_H)

/* 15 instructions for 8 products. */
static inline void mcud_add_scaled_8_f32(const float *g, const float *w, const mcud_terms_f32 *columns, float *y)
{
    int32_t left = columns->count;
    if (left <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[w], {s16-s23}\n"
        "1:\n\t"
        "vldmia %[g], {s8-s15}\n\t"
        "vldmia %[y], {s0-s7}\n\t"
        "add %[g], %[g], %[g_pitch], lsl #2\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_S8, MCUD_S16, MCUD_S8)
        MCUD_MAC4_F32(MCUD_S4, MCUD_S12, MCUD_S20, MCUD_S12)
        "subs %[left], %[left], #1\n\t"
        "vstmia %[y], {s0-s7}\n\t"
        "add %[y], %[y], %[y_pitch], lsl #2\n\t"
        "bne 1b\n\t"
        : [g] "+r"(g), [y] "+r"(y), [left] "+r"(left)
        : [w] "r"(w), [g_pitch] "r"(columns->x_pitch), [y_pitch] "r"(columns->w_pitch)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#else

static inline void mcud_add_scaled_8_f32(const float *g, const float *w, const mcud_terms_f32 *columns, float *y)
{
    for (int32_t i = 0; i < columns->count; i++, g += columns->x_pitch, y += columns->w_pitch) {
        for (int32_t c = 0; c < 8; c++) {
            y[c] = mcud_mac_f32(g[c], w[c], y[c]);
        }
    }
}

#endif

#endif
