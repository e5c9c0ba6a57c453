/* Pixels times int8 weights by vectors, requantised to int8: the core of the convolutions named _mve.
 *
 * Blocks are 3, 2 or 1 pixels by 2 channels; pixels are read where they lie. Constants are packed in the order of
 * their use, one record for each pair of channels, a channel that is missing being 0:
 *
 *   int32_t bias[2]                  with the input's zero point folded in
 *   int8_t  weights[vectors][2][16]  0 after the depth
 *   int32_t multipliers[2]
 */
#ifndef MCUD_DOT_VECTOR_S8_H
#define MCUD_DOT_VECTOR_S8_H

#include "mcud_vector.h"

/* The output channels that pixels are multiplied to. */
typedef struct {
    const int32_t *records; /* [pairs of channels] */
    int32_t channels;
    int32_t pitch; /* from a pixel's results to the next one's */
    int32_t depth;
    mcud_finish_s8 finish;
} mcud_vector_channels;

/* How many of `left` pixels to take next, at most `most`, 1 to 3: 4 are 2 and 2. */
static inline int32_t mcud_vector_next_pixels(int32_t left, int32_t most)
{
    const int32_t next = left == 4 && most == 3 ? 2 : most;
    return next < left ? next : left;
}

/* One pixel by all channels. */
static inline void mcud_vector_pixel(const mcud_vector_channels *to, const int8_t *x, const int32_t *record, int32_t channels,
                                     int8_t *y)
{
    for (const int8_t *end = y + channels; y < end; y += 2, record += 2) {
        int32_t sums[2] = {record[0], record[1]};
        record = mcud_vector_dot_1x2(x, to->depth, record + 2, sums);
        y[0] = mcud_requantize_s8(sums[0], record[0], &to->finish);
        if (y + 1 < end) {
            y[1] = mcud_requantize_s8(sums[1], record[1], &to->finish);
        }
    }
}

/* `count` pixels, 1 to 3, of x[depth] each -> y[count][channels], `pitch` apart */
static inline void mcud_vector_pixels(const mcud_vector_channels *to, const int8_t *const x[3], int32_t count,
                                      int8_t *y)
{
    const int32_t *record = to->records;
    int32_t channels = to->channels; /* that are left */
    if (count > 1 && channels > 1 && to->finish.left == 0) {
        const int32_t pairs = channels & ~1;
        if (count == 3) {
            record = mcud_vector_3x2(x, to->depth, record, &to->finish, y, pairs, to->pitch);
        } else {
            record = mcud_vector_2x2(x, to->depth, record, &to->finish, y, pairs, to->pitch);
        }
        y += pairs;
        channels -= pairs;
    }
    for (int32_t p = 0; p < count && channels > 0; p++, y += to->pitch) {
        mcud_vector_pixel(to, x[p], record, channels, y);
    }
}

#endif
