/* The steps of mcud_output_tiles.h in portable C: a lane is one channel. */
#ifndef MCUD_WINOGRAD_C_H
#define MCUD_WINOGRAD_C_H

#include <stdint.h>
#include <string.h>

#include "mcud_compiler.h"
#include "mcud_quant.h"

enum { MCUD_LANES = 4 };

/* Copies `bytes` bytes of each of `pixels` pixels, which are `step` bytes apart, to to[pixels][bytes]; returns the
 * end. */
static inline int8_t *mcud_copy_pixels(int8_t *to, const int8_t *from, int32_t step, int32_t pixels, int32_t bytes)
{
    for (; pixels > 0; pixels--, from += step, to += bytes) {
        memcpy(to, from, (size_t)bytes);
    }
    return to;
}

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

/* Channels 0 and 2 of a tile share a word of the group, and so do 1 and 3; the words between are the other tile's. */
static inline void mcud_lane_store(int32_t *group, int32_t lane, int32_t value)
{
    int16_t *const to = (int16_t *)(void *)group;
    to[4 * (lane & 1) + (lane >> 1)] = (int16_t)value;
}

/* The upper 32 bits of a product; by halves for cores without a multiplication to 64 bits. */
static inline int32_t mcud_upper_word(int32_t a, int32_t b)
{
#if defined(__thumb__) && !defined(__thumb2__)
    const int32_t a_low = a & 0xffff;
    const int32_t b_low = b & 0xffff;
    const int32_t middle = (a >> 16) * b_low + (int32_t)(((uint32_t)a_low * (uint32_t)b_low) >> 16);
    return (a >> 16) * (b >> 16) + (middle >> 16) + ((a_low * (b >> 16) + (middle & 0xffff)) >> 16);
#else
    return (int32_t)(((int64_t)a * b) >> 32);
#endif
}

/* The result of 2^s times a sum. `zero` is 2^s times the zero point, plus half of 2^s; if results are rounded twice, it
 * is the zero point. */
static inline int8_t mcud_requantize_shifted(int32_t sum, const int32_t *factor, int32_t zero, int32_t shift)
{
#if MCUD_FACTORS == 2
    const mcud_finish_s8 finish = {zero, 0, 0};
    return MCUD_RESULT_S8(sum >> shift, factor, 1, &finish);
#else
    return (int8_t)mcud_clamp((mcud_upper_word(sum, *factor) + zero) >> shift, INT8_MIN, INT8_MAX);
#endif
}

/* Multiplies the weights of four channels with the pairs of two tiles, at each position. */
#if MCUD_BLOCKS && defined(__OPTIMIZE__) && !defined(__pic__) && defined(__thumb__) && !defined(__thumb2__) &&         \
    !defined(__clang__)
#include "mcud_winograd_thumb.h"
#elif MCUD_BLOCKS && defined(__OPTIMIZE__) && defined(__riscv_mul) && __riscv_xlen == 32
#include "mcud_winograd_riscv.h"
#else

/* One loop for each half of the pairs: in a single loop, compilers would add the two products first, and run out of
 * registers. Not inlined, since the loop needs all registers. */
MCUD_NOINLINE void mcud_multiply_tiles(const int32_t *weights, const int32_t *tiles, int32_t *sums, int32_t pairs,
                                       int32_t positions)
{
    for (; positions > 0; positions--, sums += 8, weights += 4 * pairs, tiles += 2 * pairs) {
        uint32_t s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int32_t half = 0; half < 2; half++) {
            const int16_t *w = (const int16_t *)(const void *)weights + half;
            const int16_t *x = (const int16_t *)(const void *)tiles + half;
            for (const int16_t *const end = x + 4 * pairs; x != end; w += 8, x += 4) {
                const int32_t first = x[0];
                const int32_t second = x[2];
                s[0] += (uint32_t)(first * w[0]);
                s[1] += (uint32_t)(second * w[0]);
                s[2] += (uint32_t)(first * w[2]);
                s[3] += (uint32_t)(second * w[2]);
                s[4] += (uint32_t)(first * w[4]);
                s[5] += (uint32_t)(second * w[4]);
                s[6] += (uint32_t)(first * w[6]);
                s[7] += (uint32_t)(second * w[6]);
            }
        }
        memcpy(sums, s, sizeof s);
    }
}

#endif

#endif
