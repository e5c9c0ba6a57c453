/* Pixels times int8 weights by vectors, requantised to int8: the core of the convolutions named _mve.
 *
 * Blocks are 3, 2 or 1 pixels by 2 channels; pixels are read where they lie. Constants are packed in the order of
 * their use, one record for each pair of channels, a channel that is missing being 0:
 *
 *   int32_t bias[2]                  with the input's zero point folded in
 *   int8_t  weights[vectors][2][16]  0 behind the depth
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

/* One pixel by a record of two channels. */
static inline const int32_t *mcud_vector_1x2(const int8_t *x, int32_t depth, const int32_t *record,
                                             const mcud_finish_s8 *finish, int32_t used, int8_t *y)
{
    int32_t sums[2] = {record[0], record[1]};
    record = mcud_vector_dot_1x2(x, depth, record + 2, sums);
    y[0] = mcud_requantize_s8(sums[0], record[0], finish);
    if (used > 1) {
        y[1] = mcud_requantize_s8(sums[1], record[1], finish);
    }
    return record + 2;
}

/* `count` pixels, 1 to 3, of x[depth] each -> y[count][channels], `pitch` apart */
static inline void mcud_vector_pixels(const mcud_vector_channels *to, const int8_t *const x[3], int32_t count,
                                      int8_t *y)
{
    const int32_t pitch = to->pitch;
    const int32_t depth = to->depth;
    const int32_t *record = to->records;
    const int32_t pairs = to->channels & ~1; /* channels in pairs */
    if (pairs != 0) {
        if (count == 3) {
            record = mcud_vector_3x2(x, depth, record, &to->finish, y, pairs, pitch);
        } else if (count == 2) {
            record = mcud_vector_2x2(x, depth, record, &to->finish, y, pairs, pitch);
        } else {
            for (int32_t c = 0; c < pairs; c += 2) {
                record = mcud_vector_1x2(x[0], depth, record, &to->finish, 2, y + c);
            }
        }
    }
    if (pairs < to->channels) {
        y += pairs;
        for (int32_t p = 0; p < count; p++, y += pitch) {
            mcud_vector_1x2(x[p], depth, record, &to->finish, 1, y);
        }
    }
}

#endif
