/* Pixels times int8 weights by vectors, requantised to int8: the core of the convolutions named _mve.
 *
 * Blocks are 3, 2 or 1 pixels by 4 channels; pixels are read where they lie. Constants are packed in the order of
 * their use, one record for every four channels, a channel that is missing being 0:
 *
 *   int8_t  weights[2][vectors][2][16]  of channels 0 and 2, then of 1 and 3; 0 after the depth
 *   int32_t bias[4]                     with the input's zero point folded in
 *   int32_t multipliers[4]
 *
 * Kernels that add up rows of the input have a record for each pair of channels, with weights for every row:
 * int32_t bias[2], int8_t weights[rows][vectors][2][16], int32_t multipliers[2].
 */
#ifndef MCUD_DOT_VECTOR_S8_H
#define MCUD_DOT_VECTOR_S8_H

#include "mcud_vector.h"

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#define MCUD_VECTOR_FOURS
#include "mcud_fours_mve.h"
#endif

/* The output channels that pixels are multiplied to. */
typedef struct {
    const int32_t *records; /* [groups of 4 channels] */
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

/* One pixel by up to four channels. */
static inline void mcud_vector_four(const mcud_vector_channels *to, const int8_t *x, const int32_t *record,
                                    int32_t channels, int8_t *y)
{
    int32_t even[2] = {0, 0};
    int32_t odd[2] = {0, 0};
    record = mcud_vector_dot_1x2(x, to->depth, record, even);
    record = mcud_vector_dot_1x2(x, to->depth, record, odd);
    for (int32_t i = 0; i < channels; i++) {
        const int32_t sum = (i % 2 == 0 ? even : odd)[i / 2];
        y[i] = MCUD_RESULT_BY_VECTORS(record[i] + sum, record + 4 + i, 4, &to->finish);
    }
}

/* `count` pixels, 1 to 3, of x[depth] each -> y[count][channels], `pitch` apart */
static inline void mcud_vector_pixels(const mcud_vector_channels *to, const int8_t *const x[3], int32_t count,
                                      int8_t *y)
{
    const int32_t words = (int32_t)((uint32_t)(to->depth + 15) / 16 * 16 + 4 + 4 * MCUD_FACTORS); /* of a record */
    const int32_t *record = to->records;
    int32_t done = 0; /* channels */
#if defined(MCUD_VECTOR_FOURS)
    if (to->finish.left == 0) {
        const int32_t zero_point = to->finish.zero_point;
        done = to->channels & ~3;
        if (done > 0) {
            mcud_vector_fours(x, count, to->depth, record, zero_point, y, done, to->pitch);
        }
        if (done < to->channels) {
            int8_t last[12] = {0}; /* the results of an incomplete record */
            mcud_vector_fours(x, count, to->depth, record + done / 4 * words, zero_point, last, 4, 4);
            for (int32_t p = 0; p < count; p++, y += to->pitch) {
                for (int32_t i = done; i < to->channels; i++) {
                    y[i] = last[4 * p + i - done];
                }
            }
        }
        return;
    }
#endif
    for (; done < to->channels; done += 4, record += words) {
        const int32_t left = to->channels - done;
        for (int32_t p = 0; p < count; p++) {
            mcud_vector_four(to, x[p], record, left < 4 ? left : 4, y + p * to->pitch + done);
        }
    }
}

#endif
