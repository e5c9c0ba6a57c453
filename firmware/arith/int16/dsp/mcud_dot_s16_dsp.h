/* mcud_dot_s16.h for Arm cores with the DSP extension. */
#ifndef MCUD_DOT_S16_DSP_H
#define MCUD_DOT_S16_DSP_H

#include "mcud_simd.h"

/* 24 instructions for 16 products. */
static inline const int32_t *mcud_dot_fours_s16(const int16_t *x, int32_t groups, const int32_t *w, int32_t sums[4])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    for (const int16_t *end = x + 4 * groups; x < end; x += 4, w += 4) {
        const int32_t first = mcud_load_word(x);
        const int32_t second = mcud_load_word(x + 2);
        const int32_t even = mcud_lower_halves(first, second);
        const int32_t odd = mcud_upper_halves(first, second);
        a = mcud_add_products(even, mcud_even_bytes(w[0]), a);
        b = mcud_add_products(even, mcud_even_bytes(w[1]), b);
        c = mcud_add_products(even, mcud_even_bytes(w[2]), c);
        d = mcud_add_products(even, mcud_even_bytes(w[3]), d);
        a = mcud_add_products(odd, mcud_odd_bytes(w[0]), a);
        b = mcud_add_products(odd, mcud_odd_bytes(w[1]), b);
        c = mcud_add_products(odd, mcud_odd_bytes(w[2]), c);
        d = mcud_add_products(odd, mcud_odd_bytes(w[3]), d);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return w;
}

/* Two channels of two taps: `word` has the weights (first, first, second, second). */
static inline void mcud_tap_pair_s16(const int16_t *x, const int16_t *z, int32_t word, int32_t sums[2])
{
    const int32_t first = mcud_load_word(x);
    const int32_t second = mcud_load_word(z);
    sums[0] = mcud_add_products(mcud_lower_halves(first, second), mcud_even_bytes(word), sums[0]);
    sums[1] = mcud_add_products(mcud_upper_halves(first, second), mcud_odd_bytes(word), sums[1]);
}

/* Channels `at` to at + 3 of `count` taps. */
static inline void mcud_dot_taps_s16(const int16_t *const *taps, int32_t count, int32_t at, const int32_t *w,
                                     int32_t sums[4])
{
    int32_t s[4] = {sums[0], sums[1], sums[2], sums[3]};
    const int16_t *const *const end = taps + (count & ~1);
    for (; taps < end; taps += 2, w += 2) {
        mcud_tap_pair_s16(taps[0] + at, taps[1] + at, w[0], s);
        mcud_tap_pair_s16(taps[0] + at + 2, taps[1] + at + 2, w[1], s + 2);
    }
    if (count % 2 != 0) {
        const int8_t *bytes = (const int8_t *)w;
        for (int32_t i = 0; i < 4; i++) {
            s[i] += taps[0][at + i] * bytes[i];
        }
    }
    for (int32_t i = 0; i < 4; i++) {
        sums[i] = s[i];
    }
}

#endif
