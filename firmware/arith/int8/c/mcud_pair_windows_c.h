/* mcud_pair_windows_s8.h in portable C. */
#ifndef MCUD_PAIR_WINDOWS_C_H
#define MCUD_PAIR_WINDOWS_C_H

#include "mcud_pair_row.h"
#include "mcud_simd.h"

static inline void mcud_expand_columns(int32_t *to, mcud_pair_row upper, mcud_pair_row lower, int32_t columns,
                                       int32_t channels)
{
    int16_t *half = (int16_t *)(void *)to;
    for (; columns > 0; columns--, half += 2 * MCUD_WINDOW_COLUMN, upper.at += upper.step, lower.at += lower.step) {
        for (int32_t i = 0; i < channels; i++) {
            half[2 * i] = upper.at[i];
            half[2 * i + 1] = lower.at[i];
        }
    }
}

/* The products of a pair of rows under one window; `x` is its first column. */
static inline int32_t mcud_pair_products(const int16_t *x, const int8_t *w, int32_t cols, int32_t stride)
{
    int32_t sum = 0;
    int32_t place = 0; /* index in the record */
    for (int32_t phase = 0; phase < stride; phase++) {
        for (int32_t col = phase; col < cols; col += stride, place++) {
            const int8_t *const of = w + place / 2 * 4 + place % 2;
            const int16_t *const column = x + 2 * MCUD_WINDOW_COLUMN * col;
            sum += column[0] * of[0] + column[1] * of[2];
        }
    }
    return sum;
}

static inline void mcud_pair_windows_s8(const int32_t *x, int8_t *y, const int32_t *record, int32_t cols, int32_t stride,
                                        const mcud_pair_windows *by)
{
    const mcud_finish_s8 finish = {by->zero_point, 0, 0};
    const int32_t words = (cols + 1) / 2;
    for (int32_t i = 0; i < by->channels; i++, record += 1 + MCUD_FACTORS + by->pairs * words) {
        for (int32_t output = 0; output < by->outputs; output++) {
            int32_t sum = record[0];
            for (int32_t pair = 0; pair < by->pairs; pair++) {
                const int32_t place = by->first + pair < by->pairs ? by->first + pair : by->first + pair - by->pairs;
                const int32_t *const columns = x + place * (by->pair_bytes / 4) + output * stride * MCUD_WINDOW_COLUMN + i;
                const int32_t *const weights = record + 1 + MCUD_FACTORS + pair * words;
                sum += mcud_pair_products((const int16_t *)(const void *)columns, (const int8_t *)weights, cols, stride);
            }
            y[output * by->pitch + i] = MCUD_RESULT_S8(sum, record + 1, 1, &finish);
        }
    }
}

#endif
