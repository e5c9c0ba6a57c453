/* Logistic function and hyperbolic tangent of 16-bit values by a table of the logistic function at multiples of 1/24,
 * uint16_t [256], interpolated as in TFLite.
 */
#ifndef MCUD_SIGMOID_TABLE_S16_H
#define MCUD_SIGMOID_TABLE_S16_H

#include <stdint.h>

enum { MCUD_SIGMOID_LAST = 255 };

/* The logistic function of a magnitude, times 2^(16 + bits); interpolates by the lowest `bits` bits of it. */
static inline int32_t mcud_sigmoid_between(const uint16_t *table, int32_t magnitude, int32_t bits)
{
    const int32_t place = magnitude >> bits;
    const int32_t rest = magnitude & ((1 << bits) - 1);
    return ((int32_t)table[place] << bits) + rest * (table[place + 1] - table[place]);
}

/* 1 / (1 + exp(-value / (24 * 2^9))). */
static inline int32_t mcud_logistic_by_table(const uint16_t *table, int32_t value)
{
    const int32_t magnitude = value < 0 ? -value : value;
    const int32_t result =
        magnitude >> 9 >= MCUD_SIGMOID_LAST ? 0x7fff << 10 : mcud_sigmoid_between(table, magnitude, 9);
    return (value < 0 ? (1 << 25) - result + (1 << 9) - 1 : result + (1 << 9)) >> 10;
}

/* tanh(value / (48 * 2^8)) = 2 / (1 + exp(-value / (24 * 2^8))) - 1. */
static inline int32_t mcud_tanh_by_table(const uint16_t *table, int32_t value)
{
    const int32_t magnitude = value < 0 ? -value : value;
    const int32_t result =
        magnitude >> 8 >= MCUD_SIGMOID_LAST ? 0xffff << 8 : mcud_sigmoid_between(table, magnitude, 8);
    return (value < 0 ? (1 << 23) - result + (1 << 7) - 1 : result - (1 << 23) + (1 << 7)) >> 8;
}

#endif
