/* Functions of 16-bit fixed-point numbers, with the same bits as gemmlowp's, which TFLite's recurrent networks use.
 *
 * A number with b integer bits stands for value / 2^(15 - b). Results have no integer bits: 32767 stands for 1.
 */
#ifndef MCUD_FIXED_S16_H
#define MCUD_FIXED_S16_H

#include <stdint.h>

/* a * b / 2^15, halves up; the exact product fits. */
static inline int32_t mcud_product_s16(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}

/* value / 2^bits, halves away from zero; bits >= 1. */
static inline int32_t mcud_divide_s16(int32_t value, int32_t bits)
{
    const int32_t twofold = (value + (value >> 31)) >> (bits - 1); /* moves negative ties below the tie */
    return (twofold + 1) >> 1;
}

/* exp(value / 2^15) for values from -2^13 to 0: a polynomial of the fourth degree around -1/8. */
static inline int32_t mcud_exp_small_s16(int32_t value)
{
    enum { EIGHTH = 1 << 12, OF_EIGHTH = 28918, THIRD = 10923 }; /* exp(-1/8), 1/3 */
    const int32_t x = value + EIGHTH;
    const int32_t x2 = mcud_product_s16(x, x);
    const int32_t x3 = mcud_product_s16(x2, x);
    const int32_t x4 = mcud_product_s16(x2, x2);
    const int32_t thirds = mcud_product_s16(mcud_divide_s16(x4, 2) + x3, THIRD);
    const int32_t sum = x + mcud_divide_s16(thirds + x2, 1);
    return OF_EIGHTH + mcud_product_s16(OF_EIGHTH, sum);
}

/* exp of a number that is not positive and has `bits` integer bits, 1..7. */
static inline int32_t mcud_exp_s16(int32_t value, int32_t bits)
{
    /* exp(-1/4), exp(-1/2), exp(-1), exp(-2), exp(-4), exp(-8), exp(-16) */
    static const int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
    if (value == 0) {
        return INT16_MAX;
    }
    if (bits > 5 && value < -(1 << (20 - bits))) { /* below -32 */
        return 0;
    }
    const int32_t quarter = 1 << (13 - bits);
    const int32_t below = (value & (quarter - 1)) - quarter;
    int32_t result = mcud_exp_small_s16(below * (1 << bits));
    const int32_t quarters = (below - value) >> (13 - bits);
    for (int32_t i = 0; i < bits + 2 && i < 7; i++) {
        if (((quarters >> i) & 1) != 0) {
            result = mcud_product_s16(result, factors[i]);
        }
    }
    return result;
}

/* 2 / (1 + value / 2^15) for values from 0 to 32767, with 2 integer bits, by Newton's method. */
static inline int32_t mcud_twice_reciprocal_s16(int32_t value)
{
    enum { ONE = 1 << 13, OF_48_BY_17 = 23130, OF_32_BY_17 = 15420 };
    const int32_t half = (value + (1 << 15)) >> 1;
    int32_t x = OF_48_BY_17 + mcud_product_s16(half, -OF_32_BY_17);
    for (int32_t i = 0; i < 3; i++) {
        x += mcud_product_s16(x, ONE - mcud_product_s16(half, x)) * 4;
    }
    return x;
}

/* 1 / (1 + exp(-x)) of a number with 3 integer bits. */
static inline int32_t mcud_logistic_s16(int32_t value)
{
    if (value == 0) {
        return 1 << 14;
    }
    const int32_t x = mcud_twice_reciprocal_s16(mcud_exp_s16(value < 0 ? value : -value, 3));
    const int32_t result = x * 2 < INT16_MAX ? x * 2 : INT16_MAX;
    return value < 0 ? INT16_MAX - result : result;
}

/* tanh of a number with `bits` integer bits, 0..6. */
static inline int32_t mcud_tanh_s16(int32_t value, int32_t bits)
{
    enum { ONE = 1 << 13 };
    if (value == 0) {
        return 0;
    }
    const int32_t x = mcud_twice_reciprocal_s16(mcud_exp_s16(value < 0 ? value : -value, bits + 1)) - ONE;
    const int32_t result = x * 4 < INT16_MAX ? x * 4 : INT16_MAX;
    return value < 0 ? -result : result;
}

#endif
