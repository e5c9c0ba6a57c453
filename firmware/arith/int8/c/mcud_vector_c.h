/* mcud_vector.h in portable C: products. */
#ifndef MCUD_VECTOR_C_H
#define MCUD_VECTOR_C_H

#include "mcud_quant.h"

/* sums[2] += one pixel by the weights of two channels; returns the weights after them. */
static inline const int32_t *mcud_vector_dot_1x2(const int8_t *x, int32_t depth, const int32_t *weights, int32_t sums[2])
{
    const int8_t *w = (const int8_t *)weights;
    for (int32_t i = 0; i < depth; i++) {
        sums[0] += x[i] * w[i / 16 * 32 + i % 16];
        sums[1] += x[i] * w[i / 16 * 32 + i % 16 + 16];
    }
    return weights + (depth + 15) / 16 * 8;
}

/* Multiplies `channels` channels at the taps of windows, which are `step` bytes apart, to y[windows][channels]. The
 * taps of the first window are `at` bytes after `taps`. No count is 0. */
static inline void mcud_vector_taps(const int8_t *const *taps, int32_t tap_count, int32_t at, int32_t step,
                                    int32_t windows, const int32_t *records, const mcud_finish_s8 *finish, int8_t *y,
                                    int32_t channels)
{
    const int32_t record_words = 16 + 16 * MCUD_FACTORS + 4 * tap_count;
    for (; windows > 0; windows--, at += step, y += channels) {
        for (int32_t i = 0; i < channels; i++) {
            const int32_t *record = records + i / 16 * record_words;
            const int8_t *w = (const int8_t *)(record + 16) + i % 16;
            const int32_t lane = i % 2 * 8 + i / 2 % 2 * 4 + i % 16 / 4;
            int32_t sum = record[lane];
            for (int32_t t = 0; t < tap_count; t++) {
                sum += taps[t][at + i] * w[16 * t];
            }
            y[i] = MCUD_RESULT_BY_VECTORS(sum, &record[record_words - 16 * MCUD_FACTORS + lane], 16, finish);
        }
    }
}

/* Points taps[count] to taps of one row of a window: taps [first, end) are inside the input, from x on, `pitch` bytes
 * apart; the others are `padding`. */
static inline void mcud_vector_find_taps(const int8_t **taps, int32_t count, int32_t first, int32_t end,
                                         const int8_t *x, int32_t pitch, const int8_t *padding)
{
    for (int32_t s = 0; s < count; s++) {
        taps[s] = s < first || s >= end ? padding : x + (s - first) * pitch;
    }
}

#endif
