/* Expanded pixels times int8 weights, requantised to int8: the core of the convolutions.
 *
 * Blocks are 3 or 2 pixels by 2 channels; an odd last channel has a partner of zeros. For records see
 * mcud_simd.h.
 */
#ifndef MCUD_DOT_S8_H
#define MCUD_DOT_S8_H

#include "mcud_clip_s8.h"
#include "mcud_simd.h"

/* The output channels of a multiplication. */
typedef struct {
    const int32_t *records; /* [pairs of channels] */
    int32_t channels;
    int32_t groups; /* of four values each, along the depth */
    mcud_finish_s8 finish;
} mcud_channels_s8;

/* Expands `values` values to one pixel's place among `pixels`; returns the group after the last one written. */
static inline int16_t *mcud_expand(int16_t *to, const int8_t *from, int32_t values, int32_t pixels)
{
    for (; values >= 8; values -= 8) {
        mcud_expand_four(to, from, pixels);
        mcud_expand_four(to + 4 * pixels, from + 4, pixels);
        to += 8 * pixels;
        from += 8;
    }
    if (values >= 4) {
        mcud_expand_four(to, from, pixels);
        to += 4 * pixels;
        from += 4;
        values -= 4;
    }
    if (values > 0) {
        to[0] = from[0];
        to[1] = values > 2 ? from[2] : 0;
        to[2 * pixels] = values > 1 ? from[1] : 0;
        to[2 * pixels + 1] = 0;
        to += 4 * pixels;
    }
    return to;
}

/* The number of pixels to take next of `left`, at most `most` (2 or 3): never one if more are left. */
static inline int32_t mcud_next_pixels(int32_t left, int32_t most)
{
    if (left > 4 || left == 3) {
        return most;
    }
    return left > 1 ? 2 : left;
}

/* Multiplies x[groups] of 1 to 3 pixels to y[pixels][channels], whose pixels are finish.pitch apart. One pixel is in
 * the first place of two. */
static inline void mcud_multiply_s8(const mcud_channels_s8 *to, const int16_t *x, int32_t pixels, int8_t *y)
{
    const int32_t step = pixels == 3 ? 12 : 8;
    const int16_t *const ends[2] = {x + step * (to->groups & 3), x + step * to->groups};
    mcud_finish_s8 finish = to->finish;
    int8_t both[6]; /* results of the last record if the last channel has no partner */
    int8_t *target = y;
    const int32_t *record = to->records;
    for (int32_t left = to->channels; left > 0;) {
        int32_t channels = left & ~1;
        if (left == 1) {
            channels = 2;
            target = both;
            finish.pitch = 2;
        }
        if (pixels == 3) {
            record = mcud_records_3x2(x, ends, record, &finish, target, channels);
        } else if (pixels == 2) {
            record = mcud_records_2x2(x, ends, record, &finish, target, channels);
        } else {
            record = mcud_records_1x2(x, ends, record, &finish, target, channels);
        }
        target += channels;
        left -= channels;
    }
    if (to->channels % 2 != 0) {
        y += to->channels - 1;
        for (int32_t p = 0; p < pixels; p++) {
            y[p * to->finish.pitch] = both[2 * p];
        }
    }
}

#endif
