/* Float32 products by packed weights of few bits, in blocks along the depth, each of which has a scale.
 *
 * A weight is scale * (integer - zero point). Integers of four channels are adjacent, from the lowest bits on, in
 * words: [groups of 4 channels][depth][4] of `bits` each (2, 4 or 8, two's complement). Each group starts a word. A
 * block has a multiple of four values; the last block of a row has the rest. Scales are [groups of 4
 * channels][blocks][4], and so are zero points.
 *
 * The integers of a block are multiplied as floats, in order of depth, and their sum once by the scale. All functions
 * compute the same bits.
 */
#ifndef MCUD_BLOCKS_F32_H
#define MCUD_BLOCKS_F32_H

#include <stddef.h>
#include <stdint.h>

#include "mcud_simd_f32.h"

/* The most values whose weights are widened at a time; scratch has four floats for each. */
enum { MCUD_WIDENED_VALUES = 32 };

typedef struct {
    const uint32_t *weights;
    const float *scale;
    const int8_t *zero; /* NULL if all are 0 */
    int32_t depth;
    int32_t block;
    int32_t bits;
} mcud_blocks_f32;

/* Words of a group of four channels. */
static inline int32_t mcud_block_words(const mcud_blocks_f32 *from)
{
    return (from->depth * from->bits + 7) / 8;
}

/* The integer of `bits` bits at bit `first` of a word. */
static inline int32_t mcud_packed_integer(uint32_t word, int32_t first, int32_t bits)
{
    return (int32_t)(word << (32 - bits - first)) >> (32 - bits);
}

/* Widens the weights of `values` values and four channels to floats; w starts with the first value. */
static inline void mcud_widen_blocks_f32(const uint32_t *w, int32_t bits, int32_t values, float *to)
{
    const int32_t top = 32 - bits;
    const int32_t together = 8 / bits;
    for (const float *const end = to + 4 * values; to != end; w++) {
        uint32_t word = *w;
        const int32_t left = (int32_t)(end - to) / 4;
        for (const float *const stop = to + 4 * (left < together ? left : together); to != stop; to++) {
            *to = (float)((int32_t)(word << top) >> top);
            word >>= bits;
        }
    }
}

/* One header of each instruction set has:
 *
 *   mcud_add_pairs_1x4_s4  1 pixel by 4 channels, an even number of values, w[values][4] of 4 bits: sums[4]
 */
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && defined(__OPTIMIZE__)
#include "mcud_blocks_f32_mve.h"
#elif defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__OPTIMIZE__)
#include "mcud_blocks_f32_vfp.h"
#else
#include "mcud_blocks_f32_c.h"
#endif

/* x[values], w[values][4] of 4 bits */
static inline void mcud_add_1x4_s4(const float *x, const uint32_t *w, int32_t values, float sums[4])
{
    mcud_add_pairs_1x4_s4(x, w, values & ~1, sums);
    if (values % 2 != 0) {
        const uint32_t last = w[values / 2];
        for (int32_t c = 0; c < 4; c++) {
            sums[c] = mcud_mac_f32(x[values - 1], (float)mcud_packed_integer(last, 4 * c, 4), sums[c]);
        }
    }
}

/* The sum of x[values] */
static inline float mcud_total_f32(const float *x, int32_t values)
{
    float sum = 0.0f;
    for (const float *const end = x + values; x != end; x++) {
        sum += *x;
    }
    return sum;
}

/* Adds the sums of a block to results[4]; `total` is the sum of its values. */
static inline void mcud_add_block_f32(const float scale[4], const int8_t *zero, float total, const float sums[4],
                                      float results[4])
{
    if (zero == NULL) {
        results[0] = mcud_mac_f32(scale[0], sums[0], results[0]);
        results[1] = mcud_mac_f32(scale[1], sums[1], results[1]);
        results[2] = mcud_mac_f32(scale[2], sums[2], results[2]);
        results[3] = mcud_mac_f32(scale[3], sums[3], results[3]);
        return;
    }
    results[0] = mcud_mac_f32(scale[0], mcud_mac_f32(-(float)zero[0], total, sums[0]), results[0]);
    results[1] = mcud_mac_f32(scale[1], mcud_mac_f32(-(float)zero[1], total, sums[1]), results[1]);
    results[2] = mcud_mac_f32(scale[2], mcud_mac_f32(-(float)zero[2], total, sums[2]), results[2]);
    results[3] = mcud_mac_f32(scale[3], mcud_mac_f32(-(float)zero[3], total, sums[3]), results[3]);
}

#endif
