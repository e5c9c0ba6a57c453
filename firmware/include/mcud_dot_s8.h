/* Expanded pixels times int8 weights, requantised to int8: the core of the convolutions.
 *
 * Blocks are 3 or 2 pixels by 2 channels. Weights are packed for them: [pair of channels][group of 4 values of
 * the depth][channel of the pair][4], with 0 behind the depth and behind an odd last channel.
 */
#ifndef MCUD_DOT_S8_H
#define MCUD_DOT_S8_H

#include "mcud_quant.h"
#include "mcud_simd.h"

/* The output channels that a pixel is multiplied to. */
typedef struct {
    const int32_t *weights;     /* int8 [pairs of channels][groups][2][4] */
    const int32_t *bias;        /* [channels, made even], with the input's zero point folded in */
    const int32_t *multipliers; /* [channels, made even] */
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
    const int32_t channels = to->channels;
    const int32_t pitch = to->pitch;
    const int32_t groups = to->groups;
    const int32_t zero_point = to->zero_point;
    const int32_t *w = to->weights;
    const int32_t *bias = to->bias;
    const int32_t *multipliers = to->multipliers;
    for (int32_t k = 0; k < channels; k += 2) {
        int32_t sums[6] = {bias[0], bias[1], bias[0], bias[1], bias[0], bias[1]};
        w = mcud_dot_3x2(x, w, groups, sums);
        if (to->left != 0) {
            sums[0] = mcud_scale_up(sums[0], to->left);
            sums[1] = mcud_scale_up(sums[1], to->left);
            sums[2] = mcud_scale_up(sums[2], to->left);
            sums[3] = mcud_scale_up(sums[3], to->left);
            sums[4] = mcud_scale_up(sums[4], to->left);
            sums[5] = mcud_scale_up(sums[5], to->left);
        }
        const int32_t first = multipliers[0];
        y[0] = mcud_requantize_s8(sums[0], first, zero_point);
        y[pitch] = mcud_requantize_s8(sums[2], first, zero_point);
        y[2 * pitch] = mcud_requantize_s8(sums[4], first, zero_point);
        if (k + 1 == channels) {
            return;
        }
        const int32_t second = multipliers[1];
        y[1] = mcud_requantize_s8(sums[1], second, zero_point);
        y[pitch + 1] = mcud_requantize_s8(sums[3], second, zero_point);
        y[2 * pitch + 1] = mcud_requantize_s8(sums[5], second, zero_point);
        y += 2;
        bias += 2;
        multipliers += 2;
    }
}

/* x[groups] of 2 pixels -> y[2][channels], `pitch` apart */
static inline void mcud_two_pixels(const mcud_channels_s8 *to, const int16_t *x, int8_t *y)
{
    const int32_t channels = to->channels;
    const int32_t pitch = to->pitch;
    const int32_t groups = to->groups;
    const int32_t zero_point = to->zero_point;
    const int32_t *w = to->weights;
    const int32_t *bias = to->bias;
    const int32_t *multipliers = to->multipliers;
    for (int32_t k = 0; k < channels; k += 2) {
        int32_t sums[4] = {bias[0], bias[1], bias[0], bias[1]};
        w = mcud_dot_2x2(x, w, groups, sums);
        if (to->left != 0) {
            sums[0] = mcud_scale_up(sums[0], to->left);
            sums[1] = mcud_scale_up(sums[1], to->left);
            sums[2] = mcud_scale_up(sums[2], to->left);
            sums[3] = mcud_scale_up(sums[3], to->left);
        }
        const int32_t first = multipliers[0];
        y[0] = mcud_requantize_s8(sums[0], first, zero_point);
        y[pitch] = mcud_requantize_s8(sums[2], first, zero_point);
        if (k + 1 == channels) {
            return;
        }
        const int32_t second = multipliers[1];
        y[1] = mcud_requantize_s8(sums[1], second, zero_point);
        y[pitch + 1] = mcud_requantize_s8(sums[3], second, zero_point);
        y += 2;
        bias += 2;
        multipliers += 2;
    }
}

/* The first one of 2 expanded pixels -> y[channels] */
static inline void mcud_one_pixel(const mcud_channels_s8 *to, const int16_t *x, int8_t *y)
{
    const int32_t *w = to->weights;
    for (int32_t k = 0; k < to->channels; k += 2) {
        int32_t sums[2] = {to->bias[k], to->bias[k + 1]};
        w = mcud_dot_1x2(x, w, to->groups, sums);
        y[k] = mcud_requantize_s8(mcud_scale_up(sums[0], to->left), to->multipliers[k], to->zero_point);
        if (k + 1 < to->channels) {
            y[k + 1] = mcud_requantize_s8(mcud_scale_up(sums[1], to->left), to->multipliers[k + 1], to->zero_point);
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
