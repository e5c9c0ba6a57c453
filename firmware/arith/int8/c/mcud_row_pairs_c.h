/* mcud_row_pairs_s8.h in portable C. */
#ifndef MCUD_ROW_PAIRS_C_H
#define MCUD_ROW_PAIRS_C_H

#include "mcud_simd.h"

/* int16_t values from a column to the next one. */
enum { MCUD_PAIR_STEP = 2 * MCUD_PAIR_COLUMN };

/* Writes one row to one of both halves of the words; `half` is this half of the first word. */
static inline void mcud_expand_halves(int16_t *half, mcud_pair_row row, int32_t columns, int32_t channels)
{
    for (int16_t *const end = half + columns * MCUD_PAIR_STEP; half < end; half += MCUD_PAIR_STEP, row.at += row.step) {
        half[0] = row.at[0];
        if (channels == 4) {
            half[4] = row.at[1];
            half[8] = row.at[2];
            half[12] = row.at[3];
        } else {
            for (int32_t i = 1; i < channels; i++) {
                half[4 * i] = row.at[i];
            }
        }
    }
}

static inline void mcud_expand_row(int32_t *to, mcud_pair_row row, int32_t columns, int32_t channels)
{
    mcud_expand_halves((int16_t *)(void *)to, row, columns, channels);
}

static inline void mcud_expand_pair(int32_t *to, mcud_pair_row upper, mcud_pair_row lower, int32_t columns,
                                    int32_t channels)
{
    mcud_expand_row(to, upper, columns, channels);
    mcud_expand_halves((int16_t *)(void *)to + 1, lower, columns, channels);
}

static inline void mcud_expand_three(int32_t *to, const int8_t *first, const int8_t *second, const int8_t *third,
                                     int32_t step, int32_t columns)
{
    mcud_expand_pair(to, (mcud_pair_row){first, step}, (mcud_pair_row){second, step}, columns, 4);
    mcud_expand_row(to + 1, (mcud_pair_row){third, step}, columns, 4);
}

static inline void mcud_two_rows_s8(const int32_t *x, int32_t order, int8_t *y, const int32_t *record,
                                    const mcud_pair_outputs *by)
{
    const mcud_finish_s8 finish = {by->zero_point, 0, 0};
    const int32_t pitch = by->pitch; /* copies, since the compiler must expect a store to y to change *by */
    const int32_t row = by->row;
    for (int32_t i = 0; i < by->channels; i++, record += MCUD_PAIR_RECORD) {
        const int8_t *const w = (const int8_t *)(record + 1); /* w0, w1, w1, w2 for each column of the window */
        const int32_t a0 = w[0], a1 = w[1], a2 = w[3];
        const int32_t b0 = w[4], b1 = w[5], b2 = w[7];
        const int32_t c0 = w[8], c1 = w[9], c2 = w[11];
        const int32_t bias = record[0];
        /* the first and the last word of the factors, which may be the same word */
        const int32_t factor[2] = {record[4], record[3 + MCUD_FACTORS]};
        const int16_t *upper = (const int16_t *)(const void *)(x + 2 * i + order);
        const int16_t *lower = (const int16_t *)(const void *)(x + 2 * i + 1 - order);
        int8_t *to = y + i;
        for (const int16_t *const end = upper + by->length / 2; upper < end; to += pitch) {
            int32_t first = bias + upper[0] * a0 + upper[1] * a1 + lower[0] * a2;
            int32_t second = bias + upper[1] * a0 + lower[0] * a1 + lower[1] * a2;
            upper += MCUD_PAIR_STEP;
            lower += MCUD_PAIR_STEP;
            first += upper[0] * b0 + upper[1] * b1 + lower[0] * b2;
            second += upper[1] * b0 + lower[0] * b1 + lower[1] * b2;
            first += upper[MCUD_PAIR_STEP] * c0 + upper[MCUD_PAIR_STEP + 1] * c1 + lower[MCUD_PAIR_STEP] * c2;
            second += upper[MCUD_PAIR_STEP + 1] * c0 + lower[MCUD_PAIR_STEP] * c1 + lower[MCUD_PAIR_STEP + 1] * c2;
            to[0] = MCUD_RESULT_S8(first, factor, 1, &finish);
            to[row] = MCUD_RESULT_S8(second, factor, 1, &finish);
        }
    }
}

static inline void mcud_one_row_s8(const int32_t *x, int32_t order, int32_t stride, int8_t *y, const int32_t *record,
                                   const mcud_pair_outputs *by)
{
    const mcud_finish_s8 finish = {by->zero_point, 0, 0};
    const int32_t pitch = by->pitch;
    for (int32_t i = 0; i < by->channels; i++, record += MCUD_PAIR_RECORD) {
        const int8_t *const w = (const int8_t *)(record + 1); /* w0, w1, w1, w2 for each column of the window */
        const int32_t a0 = w[0], a1 = w[1], a2 = w[3];
        const int32_t b0 = w[4], b1 = w[5], b2 = w[7];
        const int32_t c0 = w[8], c1 = w[9], c2 = w[11];
        const int16_t *upper = (const int16_t *)(const void *)(x + 2 * i + order);
        const int16_t *lower = (const int16_t *)(const void *)(x + 2 * i + 1 - order);
        int8_t *to = y + i;
        for (const int16_t *const end = upper + by->length / 2; upper < end; to += pitch) {
            const int16_t *const last = upper + 2 * MCUD_PAIR_STEP;
            const int16_t *const last_lower = lower + 2 * MCUD_PAIR_STEP;
            int32_t sum = record[0] + upper[0] * a0 + upper[1] * a1 + lower[0] * a2;
            sum += upper[MCUD_PAIR_STEP] * b0 + upper[MCUD_PAIR_STEP + 1] * b1 + lower[MCUD_PAIR_STEP] * b2;
            sum += last[0] * c0 + last[1] * c1 + last_lower[0] * c2;
            to[0] = MCUD_RESULT_S8(sum, record + 4, 1, &finish);
            upper += MCUD_PAIR_STEP * stride;
            lower += MCUD_PAIR_STEP * stride;
        }
    }
}

#endif
