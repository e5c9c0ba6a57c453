/* Loops over int8 values that are faster by whole words or vectors: look-up in a table, products, values scaled by
 * channel, maxima, sums and means under a window. There are versions for Arm's and RISC-V's vectors, for the DSP extension, and in portable C; all give the
 * same bits. */
#ifndef MCUD_BYTES_H
#define MCUD_BYTES_H

#include <stdint.h>
#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_quant.h"
#include "mcud_rvv.h"
#include "mcud_simd.h"

/* The part of a window inside the input; row r's first tap is at memory + offsets[r]. */
typedef struct {
    const uint8_t *memory;
    const uint32_t *offsets;
    int32_t rows;
    int32_t cols;
    int32_t pitch; /* from one tap of a row to the next one, in bytes */
} mcud_byte_window;

/* clamp(zero_point + (a - a_zero_point) * (b - b_zero_point) * 2^left * multiplier / 2^32, -128, 127),
 * rounded half up */
typedef struct {
    int32_t a_zero_point;
    int32_t b_zero_point;
    int32_t left; /* 0..14 */
    int32_t multiplier;
    int32_t zero_point;
} mcud_byte_product;

/* clamp((x * m + b) >> shift, low, high); 0 <= shift <= 30 */
typedef struct {
    const int32_t *records; /* [channels]: m, b, shift */
    int32_t channels;
    int32_t low;
    int32_t high;
} mcud_channel_scales;

/* clamp(zero_point + (sum + offset) * multiplier / 2^shift, -128, 127), a tie to the even result before the zero point
 * is added */
typedef struct {
    int32_t offset;
    int32_t multiplier;
    int32_t shift;
    int32_t zero_point;
    int32_t taps; /* |sum + offset| <= 255 * taps */
} mcud_mean_quant;

/* sums[count] -> y[count] */
static inline void mcud_means_singly(const int32_t *sums, int32_t count, const mcud_mean_quant *by, int8_t *y)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t mean = mcud_scale_even(sums[i] + by->offset, by->multiplier, by->shift);
        y[i] = (int8_t)mcud_clamp(mean + by->zero_point, INT8_MIN, INT8_MAX);
    }
}

/* The largest value of one channel, -128 for an empty window. */
static inline int8_t mcud_max_channel(const mcud_byte_window *window, int32_t channel)
{
    int32_t most = INT8_MIN;
    for (int32_t r = 0; r < window->rows; r++) {
        const void *row = window->memory + window->offsets[r];
        const int8_t *x = (const int8_t *)row + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            most = *x > most ? *x : most;
        }
    }
    return (int8_t)most;
}

/* The sum of one channel. */
static inline int32_t mcud_sum_channel(const mcud_byte_window *window, int32_t channel)
{
    int32_t sum = 0;
    for (int32_t r = 0; r < window->rows; r++) {
        const void *row = window->memory + window->offsets[r];
        const int8_t *x = (const int8_t *)row + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            sum += *x;
        }
    }
    return sum;
}

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_bytes_mve.h"
#else

enum { MCUD_SUMS = 8 };

/* x[pixels][channels] -> y[pixels][channels]; y may be x. */
static inline void mcud_scale_pixels(const mcud_channel_scales *by, const int8_t *x, int8_t *y, int32_t pixels)
{
    const mcud_channel_scales to = *by; /* a store to y may not change it */
    for (; pixels > 0; pixels--) {
        const int32_t *record = to.records;
        for (const int8_t *const end = x + to.channels; x < end; x++, y++, record += 3) {
            *y = (int8_t)mcud_clamp((*x * record[0] + record[1]) >> record[2], to.low, to.high);
        }
    }
}

static inline void mcud_means(const int32_t *sums, int32_t count, const mcud_mean_quant *by, int8_t *y)
{
    mcud_means_singly(sums, count, by, y);
}

#if MCUD_RVV
#include "mcud_bytes_rvv.h"
#else

/* y[count] = table[x[count] + 128] */
static inline void mcud_look_up(int8_t *y, const int8_t *x, int32_t count, const int8_t *table)
{
    const int8_t *const middle = table + 128;
    int32_t left = count;
    for (; left >= 4; left -= 4, y += 4, x += 4) {
        y[0] = middle[x[0]];
        y[1] = middle[x[1]];
        y[2] = middle[x[2]];
        y[3] = middle[x[3]];
    }
    for (; left > 0; left--, y++, x++) {
        *y = middle[*x];
    }
}

/* y[count] = a[count] * b[count]; y may be a or b. */
static inline void mcud_multiply_bytes(const int8_t *a, const int8_t *b, int8_t *y, int32_t count,
                                       const mcud_byte_product *product)
{
    const mcud_byte_product by = *product; /* a store to y may not change it */
    const mcud_finish_s8 finish = {by.zero_point, 0, 0};
    for (const int8_t *const end = y + count; y < end; y++, a++, b++) {
        const int32_t value = (*a - by.a_zero_point) * (*b - by.b_zero_point) * (1 << by.left);
        *y = mcud_requantize_s8(value, by.multiplier, &finish);
    }
}

/* The sums of channels [channel, channel + 4). */
static inline void mcud_sum_four(const mcud_byte_window *window, int32_t channel, int32_t sums[4])
{
    int32_t a = 0;
    int32_t b = 0;
    int32_t c = 0;
    int32_t d = 0;
    for (int32_t r = 0; r < window->rows; r++) {
        const void *row = window->memory + window->offsets[r];
        const int8_t *x = (const int8_t *)row + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            a += x[0];
            b += x[1];
            c += x[2];
            d += x[3];
        }
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)

/* The largest values of channels [channel, channel + 4). */
static inline void mcud_max_four(const mcud_byte_window *window, int32_t channel, int8_t *y)
{
    uint32_t most = 0x80808080u;
    for (int32_t r = 0; r < window->rows; r++) {
        const uint8_t *x = window->memory + window->offsets[r] + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            most = mcud_max_bytes(most, (uint32_t)mcud_load_word(x));
        }
    }
    memcpy(y, &most, sizeof most);
}

/* The same of eight channels. */
static inline void mcud_max_eight(const mcud_byte_window *window, int32_t channel, int8_t *y)
{
    uint32_t most[2] = {0x80808080u, 0x80808080u};
    for (int32_t r = 0; r < window->rows; r++) {
        const uint8_t *x = window->memory + window->offsets[r] + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            most[0] = mcud_max_bytes(most[0], (uint32_t)mcud_load_word(x));
            most[1] = mcud_max_bytes(most[1], (uint32_t)mcud_load_word(x + 4));
        }
    }
    memcpy(y, most, sizeof most);
}

/* The sums of channels [channel, channel + 4) of at most 255 taps, which fit 16 bits. */
static inline void mcud_sum_four_short(const mcud_byte_window *window, int32_t channel, int32_t sums[4])
{
    int32_t even = 0;
    int32_t odd = 0;
    for (int32_t r = 0; r < window->rows; r++) {
        const uint8_t *x = window->memory + window->offsets[r] + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            const int32_t word = mcud_load_word(x);
            even = mcud_add_even_bytes(even, word);
            odd = mcud_add_odd_bytes(odd, word);
        }
    }
    sums[0] = (int16_t)even;
    sums[1] = (int16_t)odd;
    sums[2] = even >> 16;
    sums[3] = odd >> 16;
}

#else

/* The largest values of channels [channel, channel + 4). */
static inline void mcud_max_four(const mcud_byte_window *window, int32_t channel, int8_t *y)
{
    int32_t a = INT8_MIN;
    int32_t b = INT8_MIN;
    int32_t c = INT8_MIN;
    int32_t d = INT8_MIN;
    for (int32_t r = 0; r < window->rows; r++) {
        const void *row = window->memory + window->offsets[r];
        const int8_t *x = (const int8_t *)row + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            a = x[0] > a ? x[0] : a;
            b = x[1] > b ? x[1] : b;
            c = x[2] > c ? x[2] : c;
            d = x[3] > d ? x[3] : d;
        }
    }
    y[0] = (int8_t)a;
    y[1] = (int8_t)b;
    y[2] = (int8_t)c;
    y[3] = (int8_t)d;
}

#endif

/* The largest values of all channels -> y[channels] */
static inline void mcud_max_window(const mcud_byte_window *window, int32_t channels, int8_t *y)
{
    int32_t c = 0;
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
    for (; c + 8 <= channels; c += 8) {
        mcud_max_eight(window, c, y + c);
    }
#endif
    for (; c + 4 <= channels; c += 4) {
        mcud_max_four(window, c, y + c);
    }
    for (; c < channels; c++) {
        y[c] = mcud_max_channel(window, c);
    }
}

/* The sums of up to MCUD_SUMS channels from `channel` on. */
static inline void mcud_sum_window(const mcud_byte_window *window, int32_t channel, int32_t channels,
                                   int32_t sums[MCUD_SUMS])
{
    int32_t c = 0;
    for (; c + 4 <= channels && c < MCUD_SUMS; c += 4) {
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
        if (window->rows * window->cols <= 255) {
            mcud_sum_four_short(window, channel + c, sums + c);
            continue;
        }
#endif
        mcud_sum_four(window, channel + c, sums + c);
    }
    for (; c < channels && c < MCUD_SUMS; c++) {
        sums[c] = mcud_sum_channel(window, channel + c);
    }
}

#endif

#endif

#endif
