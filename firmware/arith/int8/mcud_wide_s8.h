/* Pixels times weights stored in 16 bits, requantised to int8, so that cores with the DSP extension need not widen
 * weights.
 *
 * A pixel is its values under a window in pairs, lower half first. A record is int32_t biases of two channels, their
 * weights [pairs][2], a pair to a word, and their factors; an odd last channel has a partner of zeros. */
#ifndef MCUD_WIDE_S8_H
#define MCUD_WIDE_S8_H

#include "mcud_dot_s8.h"

typedef struct {
    int32_t zero_point;
    int32_t pitch; /* from a pixel's results to the next one's */
    int32_t channels;
    int32_t pairs; /* of values of a pixel, at least 1 */
    int32_t step;  /* bytes from a pixel to the next one, unless pixels are interleaved */
    const int32_t *records; /* [pairs of channels] */
} mcud_wide_s8;

/* Words of a record. */
static inline int32_t mcud_wide_words(const mcud_wide_s8 *by)
{
    return 2 + 2 * by->pairs + 2 * MCUD_FACTORS;
}

/* The number of pixels to take next of `left`: 4, 3 or 1, at most `most` (3 or 4). Six pixels are taken as 3 and 3,
 * nine as 3 times 3. */
static inline int32_t mcud_wide_next(int32_t left, int32_t most)
{
    if (left < 3) {
        return 1;
    }
    return left == 3 || left == 6 || left == 9 ? 3 : most;
}

/* Expands `fours` groups, at least one, of four values of four pixels to x[fours][2][4]; see mcud_expand. */
void mcud_wide_expand_fours(int16_t *x, const int8_t *const pixels[4], int32_t fours);

/* The same for all values; the last group is filled up. */
static inline void mcud_wide_expand(int16_t *x, const int8_t *const pixels[4], int32_t values)
{
    const int32_t rest = values & 3;
    if (values > rest) {
        mcud_wide_expand_fours(x, pixels, values >> 2);
    }
    for (int32_t p = 0; rest > 0 && p < 4; p++) {
        mcud_expand(x + 4 * (values - rest) + 2 * p, pixels[p] + values - rest, rest, 4);
    }
}

/* Multiplies `pixels` pixels (4, 1 or a multiple of 3) to y[pixels][channels]. Four pixels are interleaved:
 * x[pairs][4]; three and more are `step` bytes apart. */
void mcud_wide_multiply(const mcud_wide_s8 *by, const int16_t *x, int32_t pixels, int8_t *y);

#endif
