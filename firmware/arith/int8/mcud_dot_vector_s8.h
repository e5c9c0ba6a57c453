/* Pixels times int8 weights by vectors, requantised to int8: the core of the convolutions named _mve.
 *
 * Blocks are some pixels by 4 channels; pixels are read in place. Constants are packed in the order of their use,
 * one record for every four channels, with 0 for a missing channel:
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

/* The output channels of a multiplication. */
typedef struct {
    const int32_t *records; /* [groups of 4 channels] */
    int32_t channels;
    int32_t pitch; /* from a pixel's results to the next one's */
    int32_t depth;
    mcud_finish_s8 finish;
    int32_t reads_on;       /* 1 if the 15 bytes after the last pixel may be read */
    const int32_t *offsets; /* of the sums of pixels, NULL without MCUD_PIXEL_OFFSETS; the last one two more times */
} mcud_vector_channels;

/* The number of pixels to take next of `left`, at most `most`; four pixels are taken by twos if `most` is 3. */
static inline int32_t mcud_vector_next_pixels(int32_t left, int32_t most)
{
    const int32_t next = left == 4 && most == 3 ? 2 : most;
    return next < left ? next : left;
}

#endif
