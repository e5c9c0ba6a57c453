/* Products of a gradient and lines of weights that are not packed, float32, by the instruction set that
 * mcud_simd_f32.h has chosen:
 *
 *   mcud_add_unpacked_back_2x8_f32  2 pixels of a gradient to eight values of two pixels
 *   mcud_add_unpacked_back_1x8_f32  1 pixel to eight values of one
 *
 * The products are added in order of the gradient's channels, each by mcud_mac_f32(). */
#ifndef MCUD_UNPACKED_BACK_F32_H
#define MCUD_UNPACKED_BACK_F32_H

#include "mcud_lines_f32.h"

/* Adds the products of two pixels, `apart` values from each other in the result, and four values of lines. */
static inline void mcud_add_unpacked_back_2x4_f32(const float *g, const float *w, const mcud_terms_f32 *terms,
                                                  float *y, int32_t apart)
{
    const float *h = g + terms->count;
    float a0 = y[0], a1 = y[1], a2 = y[2], a3 = y[3];
    float b0 = y[apart], b1 = y[apart + 1], b2 = y[apart + 2], b3 = y[apart + 3];
    for (const float *const end = h; g != end; g++, h++, w += terms->w_pitch) {
        const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
        a0 = mcud_mac_f32(*g, w0, a0);
        a1 = mcud_mac_f32(*g, w1, a1);
        a2 = mcud_mac_f32(*g, w2, a2);
        a3 = mcud_mac_f32(*g, w3, a3);
        b0 = mcud_mac_f32(*h, w0, b0);
        b1 = mcud_mac_f32(*h, w1, b1);
        b2 = mcud_mac_f32(*h, w2, b2);
        b3 = mcud_mac_f32(*h, w3, b3);
    }
    y[0] = a0, y[1] = a1, y[2] = a2, y[3] = a3;
    y[apart] = b0, y[apart + 1] = b1, y[apart + 2] = b2, y[apart + 3] = b3;
}

#if defined(MCUD_SIMD_F32_VFP_H)

/* Eight weights of a line: all in s24 to s31, or by four in s24 to s27 where s28 to s31 are products. */
#if MCUD_FUSES_F32
#define MCUD_FIRST_LINE_F32 "vldmia %[w], {s24-s31}\n\t"
#define MCUD_NEXT_LINE_F32
enum { MCUD_LINE_LOADED = 0 };
#else
#define MCUD_FIRST_LINE_F32 "vldmia %[w]!, {s24-s27}\n\t"
#define MCUD_NEXT_LINE_F32 "vldmia %[w], {s24-s27}\n\t"
enum { MCUD_LINE_LOADED = 4 }; /* values that w has advanced */
#endif

/* One channel of two gradients by the eight values of a line. */
#define MCUD_LINE_BACK_F32(g, h)                                                                             \
    MCUD_FIRST_LINE_F32                                                                                      \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME(g), MCUD_S24, MCUD_S28)                                                 \
    MCUD_MAC4_F32(MCUD_S8, MCUD_SAME(h), MCUD_S24, MCUD_S28)                                                 \
    MCUD_NEXT_LINE_F32                                                                                       \
    "add %[w], %[w], %[pitch], lsl #2\n\t"                                                                   \
    MCUD_MAC4_F32(MCUD_S4, MCUD_SAME(g), MCUD_NEXT_FOUR, MCUD_S28)                                           \
    MCUD_MAC4_F32(MCUD_S12, MCUD_SAME(h), MCUD_NEXT_FOUR, MCUD_S28)

/* Adds to y[8] and y[apart..apart + 7] the products of two pixels g[2][terms->count] with terms->count lines of eight
 * weights, which are terms->w_pitch values apart. Four channels at a time: 76 instructions for 64 products. */
static inline void mcud_add_unpacked_back_2x8_f32(const float *g, const float *w, const mcud_terms_f32 *terms,
                                                  float *y, int32_t apart)
{
    const float *h = g + terms->count;
    int32_t left = terms->count;
    __asm__ volatile(
        "vldmia %[y], {s0-s7}\n\t"
        "vldmia %[z], {s8-s15}\n\t"
        "subs %[left], %[left], #4\n\t"
        "blt 2f\n"
        "1:\n\t"
        "vldmia %[g]!, {s16-s19}\n\t"
        "vldmia %[h]!, {s20-s23}\n\t"
        MCUD_LINE_BACK_F32("s16", "s20")
        MCUD_LINE_BACK_F32("s17", "s21")
        MCUD_LINE_BACK_F32("s18", "s22")
        MCUD_LINE_BACK_F32("s19", "s23")
        "subs %[left], %[left], #4\n\t"
        "bge 1b\n"
        "2:\n\t"
        "adds %[left], %[left], #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        "vldmia %[g]!, {s16}\n\t"
        "vldmia %[h]!, {s20}\n\t"
        MCUD_LINE_BACK_F32("s16", "s20")
        "subs %[left], %[left], #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        "vstmia %[y], {s0-s7}\n\t"
        "vstmia %[z], {s8-s15}\n\t"
        : [g] "+r"(g), [h] "+r"(h), [w] "+r"(w), [left] "+r"(left)
        : [y] "r"(y), [z] "r"(y + apart), [pitch] "r"(terms->w_pitch - MCUD_LINE_LOADED)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* One channel of one gradient by the eight values of a line, in these registers. */
#define MCUD_PIXEL_LINE_BACK_F32(g, w0, w1, w2, w3, w4, w5, w6, w7)                                          \
    "vldmia %[w], {" w0 "-" w7 "}\n\t"                                                                       \
    "add %[w], %[w], %[pitch], lsl #2\n\t"                                                                   \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME(g), w0, w1, w2, w3, w0, w1, w2, w3)                                     \
    MCUD_MAC4_F32(MCUD_S4, MCUD_SAME(g), w4, w5, w6, w7, w4, w5, w6, w7)

/* Adds to y[8] the products of a pixel g[terms->count] with terms->count lines of eight weights, which are
 * terms->w_pitch values apart. Four channels at a time: 43 instructions for 32 products. */
static inline void mcud_add_unpacked_back_1x8_f32(const float *g, const float *w, const mcud_terms_f32 *terms,
                                                  float *y)
{
    int32_t left = terms->count;
    __asm__ volatile(
        "vldmia %[y], {s0-s7}\n\t"
        "subs %[left], %[left], #4\n\t"
        "blt 2f\n"
        "1:\n\t"
        "vldmia %[g]!, {s8-s11}\n\t"
        MCUD_PIXEL_LINE_BACK_F32("s8", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23")
        MCUD_PIXEL_LINE_BACK_F32("s9", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31")
        MCUD_PIXEL_LINE_BACK_F32("s10", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23")
        MCUD_PIXEL_LINE_BACK_F32("s11", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31")
        "subs %[left], %[left], #4\n\t"
        "bge 1b\n"
        "2:\n\t"
        "adds %[left], %[left], #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        "vldmia %[g]!, {s8}\n\t"
        MCUD_PIXEL_LINE_BACK_F32("s8", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23")
        "subs %[left], %[left], #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        "vstmia %[y], {s0-s7}\n\t"
        : [g] "+r"(g), [w] "+r"(w), [left] "+r"(left)
        : [y] "r"(y), [pitch] "r"(terms->w_pitch)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#else

/* Adds to y[8] and y[apart..apart + 7] the products of two pixels g[2][terms->count] with terms->count lines of eight
 * weights, which are terms->w_pitch values apart. */
static inline void mcud_add_unpacked_back_2x8_f32(const float *g, const float *w, const mcud_terms_f32 *terms,
                                                  float *y, int32_t apart)
{
    mcud_add_unpacked_back_2x4_f32(g, w, terms, y, apart);
    mcud_add_unpacked_back_2x4_f32(g, w + 4, terms, y + 4, apart);
}

/* Adds to y[8] the products of a pixel g[terms->count] with terms->count lines of eight weights, which are
 * terms->w_pitch values apart. */
static inline void mcud_add_unpacked_back_1x8_f32(const float *g, const float *w, const mcud_terms_f32 *terms,
                                                  float *y)
{
    mcud_add_terms_4_f32(g, w, terms, y);
    mcud_add_terms_4_f32(g, w + 4, terms, y + 4);
}

#endif

#endif
