/* Expanded pixels times int8 weights, requantised to int8: the core of the convolutions.
 *
 * Blocks are 3 or 2 pixels by 2 channels. Constants are packed for them in the order of their use, one record for
 * each pair of channels:
 *
 *   int32_t bias[2]                 with the input's zero point folded in
 *   int8_t  weights[groups][2][4]   groups of four values of the depth, 0 behind the depth
 *   int32_t multipliers[2]
 *
 * An odd last channel has a partner of zeros.
 */
#ifndef MCUD_DOT_S8_H
#define MCUD_DOT_S8_H

#include "mcud_quant.h"
#include "mcud_simd.h"

/* The output channels that a pixel is multiplied to. */
typedef struct {
    const int32_t *records; /* [pairs of channels] */
    int32_t channels;
    int32_t pitch;  /* from a pixel's results to the next one's */
    int32_t groups; /* of four values each, along the depth */
    int32_t left;   /* a sum is times 2^left before its multiplier; 0 but for scales of 0.5 and more */
    int32_t zero_point;
} mcud_channels_s8;

/* Expands `values` values to one pixel's place among `pixels`; the group behind the last one written. */
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

/* x[groups] of 3 pixels -> y[3][channels], `pitch` apart */
static inline void mcud_three_pixels(const mcud_channels_s8 *to, const int16_t *x, int8_t *y)
{
    const int16_t *const ends[2] = {x + 12 * (to->groups & 3), x + 12 * to->groups};
    const int8_t *const end = y + to->channels;
    const int32_t pitch = to->pitch;
    const int32_t left = to->left;
    const int32_t zero_point = to->zero_point;
    const int32_t *at = to->records;
    for (; y < end; y += 2, at += 2) {
        int32_t sums[6] = {at[0], at[1], at[0], at[1], at[0], at[1]};
        at = mcud_dot_3x2(x, ends, at + 2, sums);
        if (left != 0) {
            sums[0] = mcud_scale_up(sums[0], left);
            sums[1] = mcud_scale_up(sums[1], left);
            sums[2] = mcud_scale_up(sums[2], left);
            sums[3] = mcud_scale_up(sums[3], left);
            sums[4] = mcud_scale_up(sums[4], left);
            sums[5] = mcud_scale_up(sums[5], left);
        }
        y[0] = mcud_requantize_s8(sums[0], at[0], zero_point);
        y[pitch] = mcud_requantize_s8(sums[2], at[0], zero_point);
        y[2 * pitch] = mcud_requantize_s8(sums[4], at[0], zero_point);
        if (y + 1 == end) {
            return;
        }
        y[1] = mcud_requantize_s8(sums[1], at[1], zero_point);
        y[pitch + 1] = mcud_requantize_s8(sums[3], at[1], zero_point);
        y[2 * pitch + 1] = mcud_requantize_s8(sums[5], at[1], zero_point);
    }
}

/* x[groups] of 2 pixels -> y[2][channels], `pitch` apart */
static inline void mcud_two_pixels(const mcud_channels_s8 *to, const int16_t *x, int8_t *y)
{
    const int16_t *const ends[2] = {x + 8 * (to->groups & 3), x + 8 * to->groups};
    const int8_t *const end = y + to->channels;
    const int32_t pitch = to->pitch;
    const int32_t left = to->left;
    const int32_t zero_point = to->zero_point;
    const int32_t *at = to->records;
    for (; y < end; y += 2, at += 2) {
        int32_t sums[4] = {at[0], at[1], at[0], at[1]};
        at = mcud_dot_2x2(x, ends, at + 2, sums);
        if (left != 0) {
            sums[0] = mcud_scale_up(sums[0], left);
            sums[1] = mcud_scale_up(sums[1], left);
            sums[2] = mcud_scale_up(sums[2], left);
            sums[3] = mcud_scale_up(sums[3], left);
        }
        y[0] = mcud_requantize_s8(sums[0], at[0], zero_point);
        y[pitch] = mcud_requantize_s8(sums[2], at[0], zero_point);
        if (y + 1 == end) {
            return;
        }
        y[1] = mcud_requantize_s8(sums[1], at[1], zero_point);
        y[pitch + 1] = mcud_requantize_s8(sums[3], at[1], zero_point);
    }
}

/* The first one of 2 expanded pixels -> y[channels] */
static inline void mcud_one_pixel(const mcud_channels_s8 *to, const int16_t *x, int8_t *y)
{
    const int16_t *const ends[2] = {x, x + 8 * to->groups};
    const int8_t *const end = y + to->channels;
    const int32_t *at = to->records;
    for (; y < end; y += 2, at += 2) {
        int32_t sums[2] = {at[0], at[1]};
        at = mcud_dot_1x2(x, ends, at + 2, sums);
        y[0] = mcud_requantize_s8(mcud_scale_up(sums[0], to->left), at[0], to->zero_point);
        if (y + 1 < end) {
            y[1] = mcud_requantize_s8(mcud_scale_up(sums[1], to->left), at[1], to->zero_point);
        }
    }
}

/* Narrows int8 results to [low, high]; nearly always that is all of int8, and nothing to do. */
static inline void mcud_clip_s8(int8_t *y, int32_t count, int32_t low, int32_t high)
{
    if (low == INT8_MIN && high == INT8_MAX) {
        return;
    }
    for (const int8_t *end = y + count; y < end; y++) {
        *y = (int8_t)mcud_clamp(*y, low, high);
    }
}

#endif
