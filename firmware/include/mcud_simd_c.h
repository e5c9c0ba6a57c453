/* mcud_simd.h in portable C. Constants are read byte by byte, as a little-endian machine stores them. */
#ifndef MCUD_SIMD_C_H
#define MCUD_SIMD_C_H

#include "mcud_quant.h"

/* Rounds half up: clamp(zero_point + acc * multiplier / 2^32, -128, 127). */
static inline int8_t mcud_requantize_s8(int32_t acc, int32_t multiplier, int32_t zero_point)
{
    return (int8_t)mcud_clamp(zero_point + mcud_scale(acc, multiplier, 32), INT8_MIN, INT8_MAX);
}

/* sum * 2^left, saturated; 0 <= left <= 30. */
static inline int32_t mcud_scale_up(int32_t sum, int32_t left)
{
    const int64_t scaled = (int64_t)sum * ((int32_t)1 << left);
    return scaled > INT32_MAX ? INT32_MAX : (scaled < INT32_MIN ? INT32_MIN : (int32_t)scaled);
}

/* Four values of one pixel to its place in a group of `pixels` pixels. */
static inline void mcud_expand_four(int16_t *to, const int8_t *from, int32_t pixels)
{
    to[0] = from[0];
    to[1] = from[2];
    to[2 * pixels] = from[1];
    to[2 * pixels + 1] = from[3];
}

/* The same value four times. */
static inline void mcud_expand_same(int16_t *to, int32_t value, int32_t pixels)
{
    to[0] = to[1] = to[2 * pixels] = to[2 * pixels + 1] = (int16_t)value;
}

/* Adds the products of a group: sums[2 * p + k] += x of pixel p times w of channel k, of 1 to 3 pixels. */
static inline void mcud_group_x2(const int16_t *x, const int8_t *w, int32_t pixels, int32_t used, int32_t *sums)
{
    for (int32_t p = 0; p < used; p++) {
        const int32_t x0 = x[2 * p];
        const int32_t x2 = x[2 * p + 1];
        const int32_t x1 = x[2 * (pixels + p)];
        const int32_t x3 = x[2 * (pixels + p) + 1];
        sums[2 * p] += x0 * w[0] + x1 * w[1] + x2 * w[2] + x3 * w[3];
        sums[2 * p + 1] += x0 * w[4] + x1 * w[5] + x2 * w[6] + x3 * w[7];
    }
}

/* Three pixels by two channels: x of 3 pixels, w[groups][2], sums[pixel][channel]. */
static inline const int32_t *mcud_dot_3x2(const int16_t *x, const int16_t *const ends[2], const int32_t *weights,
                                          int32_t sums[6])
{
    const int8_t *w = (const int8_t *)weights;
    for (; x < ends[1]; x += 12, w += 8, weights += 2) {
        mcud_group_x2(x, w, 3, 3, sums);
    }
    return weights;
}

/* Two pixels by two channels. */
static inline const int32_t *mcud_dot_2x2(const int16_t *x, const int16_t *const ends[2], const int32_t *weights,
                                          int32_t sums[4])
{
    const int8_t *w = (const int8_t *)weights;
    for (; x < ends[1]; x += 8, w += 8, weights += 2) {
        mcud_group_x2(x, w, 2, 2, sums);
    }
    return weights;
}

/* The first one of two pixels by two channels. */
static inline const int32_t *mcud_dot_1x2(const int16_t *x, const int16_t *const ends[2], const int32_t *weights,
                                          int32_t sums[2])
{
    const int8_t *w = (const int8_t *)weights;
    for (; x < ends[1]; x += 8, w += 8, weights += 2) {
        mcud_group_x2(x, w, 2, 1, sums);
    }
    return weights;
}

/* One group of one pixel and four channels: x[4], w[4 channels][4]. */
static inline const int32_t *mcud_group_1x4(const int8_t x[4], const int32_t weights[4], int32_t sums[4])
{
    const int8_t *w = (const int8_t *)weights;
    sums[0] += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
    sums[1] += x[0] * w[4] + x[1] * w[5] + x[2] * w[6] + x[3] * w[7];
    sums[2] += x[0] * w[8] + x[1] * w[9] + x[2] * w[10] + x[3] * w[11];
    sums[3] += x[0] * w[12] + x[1] * w[13] + x[2] * w[14] + x[3] * w[15];
    return weights + 4;
}

/* One pixel, not expanded, by four channels. */
static inline const int32_t *mcud_dot_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *weights,
                                          int32_t sums[4])
{
    for (; x < ends[1]; x += 4) {
        weights = mcud_group_1x4(x, weights, sums);
    }
    return weights;
}

/* Four channels, `at` bytes behind the taps of a window, taken two by two. The weights are (first, first, second,
 * second) of channels 0 and 1, then of channels 2 and 3. */
static inline const int32_t *mcud_tap_pairs_x4(const int8_t *const *taps, const int8_t *const *const ends[2], int32_t at,
                                               const int32_t *weights, int32_t sums[4])
{
    const int8_t *w = (const int8_t *)weights;
    for (; taps < ends[1]; taps += 2, w += 8, weights += 2) {
        const int8_t *first = taps[0] + at;
        const int8_t *second = taps[1] + at;
        sums[0] += first[0] * w[0] + second[0] * w[2];
        sums[1] += first[1] * w[1] + second[1] * w[3];
        sums[2] += first[2] * w[4] + second[2] * w[6];
        sums[3] += first[3] * w[5] + second[3] * w[7];
    }
    return weights;
}

/* Four channels of one tap. */
static inline void mcud_one_tap_x4(const int8_t *tap, const int32_t *weights, int32_t sums[4])
{
    const int8_t *w = (const int8_t *)weights;
    sums[0] += tap[0] * w[0];
    sums[1] += tap[1] * w[1];
    sums[2] += tap[2] * w[2];
    sums[3] += tap[3] * w[3];
}

#endif
