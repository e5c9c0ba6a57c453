/* mcud_pixels_s16.h for Arm cores with the DSP extension. */
#ifndef MCUD_PIXELS_S16_DSP_H
#define MCUD_PIXELS_S16_DSP_H

#include "mcud_simd.h"

static inline void mcud_expand_s16(int16_t *to, const int16_t *x, int32_t groups, int32_t pixels)
{
    int32_t *pairs = (int32_t *)(void *)to;
    for (const int16_t *end = x + 4 * groups; x < end; x += 4, pairs += 2 * pixels) {
        const int32_t first = mcud_load_word(x);
        const int32_t second = mcud_load_word(x + 2);
        pairs[0] = mcud_lower_halves(first, second);
        pairs[pixels] = mcud_upper_halves(first, second);
    }
}

/* These blocks need all registers, which GCC gives them and Clang does not. None is left for `end`, which is read from
 * the stack. */
#if MCUD_BLOCKS && !defined(__clang__)
#define MCUD_PIXELS_LOOP(group)                                                                              \
    "0:\n\t" group                                                                                           \
    "ldr r8, %[end]\n\t"                                                                                     \
    "cmp %[w], r8\n\t"                                                                                       \
    "bne 0b\n\t"

/* 23 instructions for 24 products. */
MCUD_BLOCK const int32_t *mcud_sum_3x2_s16(const int32_t *x, const int32_t *w, const int32_t *end, int32_t sums[6])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    int32_t e = sums[4];
    int32_t f = sums[5];
    int32_t w0;
    int32_t w1;
    __asm__ volatile(MCUD_PIXELS_LOOP(MCUD_GROUP_3X2)
                     : [x] "+r"(x), [w] "+r"(w), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [e] "+r"(e),
                       [f] "+r"(f), [w0] "=&r"(w0), [w1] "=&r"(w1)
                     : [end] "m"(end)
                     : "r8", "r10", "lr", "cc", "memory");
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    sums[4] = e;
    sums[5] = f;
    return w;
}

/* 17 instructions for 16 products. */
MCUD_BLOCK const int32_t *mcud_sum_2x2_s16(const int32_t *x, const int32_t *w, const int32_t *end, int32_t sums[4])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    int32_t w0;
    int32_t w1;
    int32_t t;
    __asm__ volatile(MCUD_PIXELS_LOOP(MCUD_GROUP_2X2)
                     : [x] "+r"(x), [w] "+r"(w), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [w0] "=&r"(w0),
                       [w1] "=&r"(w1), [t] "=&r"(t)
                     : [end] "m"(end)
                     : "r8", "r10", "r11", "lr", "cc", "memory");
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return w;
}
#else
static inline const int32_t *mcud_sum_3x2_s16(const int32_t *x, const int32_t *w, const int32_t *end, int32_t sums[6])
{
    for (; w < end; w += 2, x += 6) {
        for (int32_t p = 0; p < 3; p++) {
            int32_t first = mcud_add_products(x[p], mcud_even_bytes(w[0]), sums[2 * p]);
            int32_t second = mcud_add_products(x[p], mcud_even_bytes(w[1]), sums[2 * p + 1]);
            sums[2 * p] = mcud_add_products(x[3 + p], mcud_odd_bytes(w[0]), first);
            sums[2 * p + 1] = mcud_add_products(x[3 + p], mcud_odd_bytes(w[1]), second);
        }
    }
    return w;
}

static inline const int32_t *mcud_sum_2x2_s16(const int32_t *x, const int32_t *w, const int32_t *end, int32_t sums[4])
{
    for (; w < end; w += 2, x += 4) {
        for (int32_t p = 0; p < 2; p++) {
            int32_t first = mcud_add_products(x[p], mcud_even_bytes(w[0]), sums[2 * p]);
            int32_t second = mcud_add_products(x[p], mcud_even_bytes(w[1]), sums[2 * p + 1]);
            sums[2 * p] = mcud_add_products(x[2 + p], mcud_odd_bytes(w[0]), first);
            sums[2 * p + 1] = mcud_add_products(x[2 + p], mcud_odd_bytes(w[1]), second);
        }
    }
    return w;
}
#endif

static inline const int32_t *mcud_sum_pixels_s16(const int16_t *x, int32_t groups, int32_t pixels, const int32_t *w,
                                                 int32_t sums[6])
{
    const int32_t *pairs = (const int32_t *)(const void *)x;
    const int32_t *end = w + 2 * groups;
    return pixels == 3 ? mcud_sum_3x2_s16(pairs, w, end, sums) : mcud_sum_2x2_s16(pairs, w, end, sums);
}

#endif
