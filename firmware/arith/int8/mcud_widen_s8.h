/* Widens the second matrix of a product to weights of 16 bits, less their zero point, in records of mcud_wide_s8.h. In
 * place of a bias is the sum of the channel's weights. */
#ifndef MCUD_WIDEN_S8_H
#define MCUD_WIDEN_S8_H

#include "mcud_simd.h"

typedef struct {
    int32_t *records; /* [pairs of channels] */
    int32_t record_words;
    int32_t channels;
    int32_t zero_point;
} mcud_widened;

/* Writes `count` values of a channel, from[0..count)[at], to the pairs weights[0] and weights[2]; returns their sum. */
static inline int32_t mcud_widen_four(const int8_t *const from[4], int32_t at, int32_t count, int32_t zero_point,
                                      int32_t *weights)
{
    int32_t sum = 0;
    int32_t values[4] = {0};
    for (int32_t i = 0; i < count; i++) {
        values[i] = from[i][at] - zero_point;
        sum += values[i];
    }
    weights[0] = (int32_t)(((uint32_t)values[2] << 16) | ((uint32_t)values[0] & 0xFFFFu));
    weights[2] = (int32_t)(((uint32_t)values[3] << 16) | ((uint32_t)values[1] & 0xFFFFu));
    return sum;
}

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_widen_dsp.h"
#else
#include "mcud_widen_c.h"
#endif

/* Widens channel `channel`, which is line[length]. */
static inline void mcud_widen_line(const mcud_widened *to, int32_t channel, const int8_t *line, int32_t length)
{
    const int32_t whole = length & ~3;
    int32_t *record = to->records + (channel >> 1) * to->record_words + (channel & 1);
    record[0] = mcud_widen_fours(line, whole, to->zero_point, record + 2);
    if (length > whole) {
        const int8_t *const rest[4] = {line, line + 1, line + 2, line + 3};
        record[0] += mcud_widen_four(rest, whole, length - whole, to->zero_point, record + 2 + whole);
    }
}

/* Widens values [k, k + count) of all channels, which are lines[count]; k is a multiple of four. */
static inline void mcud_widen_lines(const mcud_widened *to, int32_t k, const int8_t *const lines[4], int32_t count)
{
    for (int32_t channel = mcud_widen_columns(to, k, lines, count); channel < to->channels; channel++) {
        int32_t *record = to->records + (channel >> 1) * to->record_words + (channel & 1);
        record[0] += mcud_widen_four(lines, channel, count, to->zero_point, record + 2 + k);
    }
}

#endif
