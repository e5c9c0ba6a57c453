/* The steps of mcud_winograd_s8.h in portable C: a lane is one channel. */
#ifndef MCUD_WINOGRAD_C_H
#define MCUD_WINOGRAD_C_H

#include <stdint.h>

#include "mcud_quant.h"

enum { MCUD_LANES = 4 };

static inline int32_t mcud_lane_load(const int8_t *four, int32_t lane)
{
    return four[lane];
}

static inline int32_t mcud_lane_add(int32_t a, int32_t b)
{
    return a + b;
}

static inline int32_t mcud_lane_sub(int32_t a, int32_t b)
{
    return a - b;
}

static inline int32_t mcud_lane_twice(int32_t a)
{
    return 2 * a;
}

/* A lane's place in a group: its pair is one of two tiles'. */
static inline void mcud_lane_store(int32_t *group, int32_t lane, int32_t value)
{
    int16_t *const to = (int16_t *)(void *)group;
    to[4 * (lane & 1) + (lane >> 1)] = (int16_t)value;
}

/* 2^s times a sum to its result; `zero` is 2^s times the zero point, and half of 2^s. */
static inline int8_t mcud_requantize_shifted(int32_t sum, int32_t multiplier, int32_t zero, int32_t shift)
{
    const int32_t product = (int32_t)(((int64_t)sum * multiplier) >> 32);
    return (int8_t)mcud_clamp((product + zero) >> shift, INT8_MIN, INT8_MAX);
}

static inline void mcud_multiply_tiles(const int32_t *weights, const int32_t *tiles, int32_t *sums, int32_t pairs,
                                       int32_t positions)
{
    const int16_t *w = (const int16_t *)(const void *)weights;
    const int16_t *x = (const int16_t *)(const void *)tiles;
    for (; positions > 0; positions--, sums += 8) {
        uint32_t s[8] = {0};
        for (int32_t k = 0; k < pairs; k++, w += 8, x += 4) {
            for (int32_t c = 0; c < 4; c++) {
                s[2 * c] += (uint32_t)(x[0] * w[2 * c]) + (uint32_t)(x[1] * w[2 * c + 1]);
                s[2 * c + 1] += (uint32_t)(x[2] * w[2 * c]) + (uint32_t)(x[3] * w[2 * c + 1]);
            }
        }
        for (int32_t i = 0; i < 8; i++) {
            sums[i] = (int32_t)s[i];
        }
    }
}

#endif
