/* mcud_product_s8.h for Arm cores with the DSP extension. */
#ifndef MCUD_PRODUCT_S8_DSP_H
#define MCUD_PRODUCT_S8_DSP_H

/* -value in both halves; adding bytes to them subtracts their zero point. */
static inline int32_t mcud_negative_pair(int32_t value)
{
    return (int32_t)(((uint32_t)-value << 16) | ((uint32_t)-value & 0xFFFFu));
}

/* sums[4] += a[length] by each of four lines of b */
static inline void mcud_product_lines(const mcud_product_s8 *what, const int8_t *a, const int8_t *const b[4],
                                      int32_t length, int32_t sums[4])
{
    const int32_t a_zero = mcud_negative_pair(what->a_zero_point);
    const int32_t b_zero = mcud_negative_pair(what->b_zero_point);
    const int32_t whole = length & ~3;
    for (int32_t line = 0; line < 4; line += 2) {
        const int8_t *b0 = b[line];
        const int8_t *b1 = b[line + 1];
        const int8_t *x = a;
        int32_t s0 = sums[line];
        int32_t s1 = sums[line + 1];
        for (const int8_t *end = a + whole; x < end; x += 4, b0 += 4, b1 += 4) {
            const int32_t word = mcud_load_word(x);
            const int32_t even = mcud_add_even_bytes(a_zero, word);
            const int32_t odd = mcud_add_odd_bytes(a_zero, word);
            const int32_t w0 = mcud_load_word(b0);
            const int32_t w1 = mcud_load_word(b1);
            s0 = mcud_add_products(even, mcud_add_even_bytes(b_zero, w0), s0);
            s1 = mcud_add_products(even, mcud_add_even_bytes(b_zero, w1), s1);
            s0 = mcud_add_products(odd, mcud_add_odd_bytes(b_zero, w0), s0);
            s1 = mcud_add_products(odd, mcud_add_odd_bytes(b_zero, w1), s1);
        }
        for (int32_t i = 0; i < (length & 3); i++) {
            const int32_t value = x[i] - what->a_zero_point;
            s0 += value * (b0[i] - what->b_zero_point);
            s1 += value * (b1[i] - what->b_zero_point);
        }
        sums[line] = s0;
        sums[line + 1] = s1;
    }
}

/* sums[4] += the products of a pair of values and of four columns of two lines of b */
static inline void mcud_product_pair(int32_t values, int32_t first, int32_t second, int32_t b_zero, int32_t sums[4])
{
    const int32_t first_even = mcud_add_even_bytes(b_zero, first);
    const int32_t first_odd = mcud_add_odd_bytes(b_zero, first);
    const int32_t second_even = mcud_add_even_bytes(b_zero, second);
    const int32_t second_odd = mcud_add_odd_bytes(b_zero, second);
    sums[0] = mcud_add_products(values, mcud_lower_halves(first_even, second_even), sums[0]);
    sums[1] = mcud_add_products(values, mcud_lower_halves(first_odd, second_odd), sums[1]);
    sums[2] = mcud_add_products(values, mcud_upper_halves(first_even, second_even), sums[2]);
    sums[3] = mcud_add_products(values, mcud_upper_halves(first_odd, second_odd), sums[3]);
}

/* sums[4] += a[length] by four columns of b[length] */
static inline void mcud_product_four_columns(const mcud_product_s8 *what, const int8_t *a, const int8_t *b,
                                             int32_t length, int32_t sums[4])
{
    const int32_t a_zero = mcud_negative_pair(what->a_zero_point);
    const int32_t b_zero = mcud_negative_pair(what->b_zero_point);
    const int32_t pitch = what->pitch;
    int32_t s[4] = {sums[0], sums[1], sums[2], sums[3]};
    const int8_t *const end = a + length;
    for (; end - a >= 4; a += 4) {
        const int32_t word = mcud_load_word(a);
        const int32_t b0 = mcud_load_word(b);
        b += pitch;
        const int32_t b1 = mcud_load_word(b);
        b += pitch;
        mcud_product_pair(mcud_add_even_bytes(a_zero, word), b0, mcud_load_word(b), b_zero, s);
        b += pitch;
        mcud_product_pair(mcud_add_odd_bytes(a_zero, word), b1, mcud_load_word(b), b_zero, s);
        b += pitch;
    }
    for (; a < end; a++, b += pitch) {
        const int32_t value = *a - what->a_zero_point;
        for (int32_t j = 0; j < 4; j++) {
            s[j] += value * (b[j] - what->b_zero_point);
        }
    }
    for (int32_t j = 0; j < 4; j++) {
        sums[j] = s[j];
    }
}

#include "mcud_product_s8_fours.h"

#endif
