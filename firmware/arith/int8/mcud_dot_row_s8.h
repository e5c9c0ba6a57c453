/* One pixel, read in place, row by row, times int8 weights: for outputs of a single pixel. Four channels are summed at
 * a time, with records of mcud_records_1x4; the depth is the sum of all rows, each filled up to whole groups of four.
 * The last one to three channels have a record each: int32_t bias, weights [groups][4], multiplier. */
#ifndef MCUD_DOT_ROW_S8_H
#define MCUD_DOT_ROW_S8_H

#include "mcud_compiler.h"
#include "mcud_simd.h"

/* Adds the products of x[values] and four channels' weights for it; returns the weights after them. */
static inline const int32_t *mcud_dot_row_s8(const int8_t *x, int32_t values, const int32_t *w,
                                             int32_t sums[4])
{
    int32_t a[4] = {sums[0], sums[1], sums[2], sums[3]};
    const int32_t whole = values & ~3;
    const int8_t *const ends[2] = {x + (values & 28), x + whole};
    mcud_sum_1x4(x, ends, w, a);
    x += whole;
    w += whole;
    values &= 3;
    if (values > 0) { /* reads no bytes after the row */
        const int8_t tail[4] = {x[0], values > 1 ? x[1] : 0, values > 2 ? x[2] : 0, 0};
        mcud_group_1x4(tail, w, a);
        w += 4;
    }
    sums[0] = a[0];
    sums[1] = a[1];
    sums[2] = a[2];
    sums[3] = a[3];
    return w;
}

/* Adds the products of x[values] and one channel's weights for it; returns the weights after them. */
static inline const int32_t *mcud_dot_one_s8(const int8_t *x, int32_t values, const int32_t *w, int32_t *sum)
{
    int32_t a = *sum;
    for (const int8_t *const end = x + (values & ~3); x < end; x += 4) {
        a = mcud_group_1x1(x, w++, a);
    }
    values &= 3;
    if (values > 0) {
        const int8_t tail[4] = {x[0], values > 1 ? x[1] : 0, values > 2 ? x[2] : 0, 0};
        a = mcud_group_1x1(tail, w++, a);
    }
    *sum = a;
    return w;
}

/* Requantises the sums of four channels to y[4]. */
static inline void mcud_finish_row_s8(const int32_t sums[4], const int32_t *factors, const mcud_finish_s8 *finish,
                                      int8_t *y)
{
    for (int32_t i = 0; i < 4; i++) {
        y[i] = MCUD_RESULT_S8(sums[i], factors + i, 4, finish);
    }
}

/* Multiplies x[values] to y[channels] by records of one channel; returns the record after those. */
MCUD_NOINLINE const int32_t *mcud_ones_s8(const mcud_finish_s8 *finish, const int32_t *record, int32_t channels,
                                          const int8_t *x, int32_t values, int8_t *y)
{
    for (const int8_t *const last = y + channels; y < last; y++) {
        int32_t sum = *record++;
        record = mcud_dot_one_s8(x, values, record, &sum);
        const int32_t *const factor = record;
        record += MCUD_FACTORS;
        *y = MCUD_RESULT_S8(sum, factor, 1, finish);
    }
    return record;
}

/* Multiplies x[values] to y[channels]; fastest if `values` is a multiple of 4. Returns the record after the used ones. */
static inline const int32_t *mcud_pixel_s8(const mcud_finish_s8 *to, const int32_t *record, int32_t channels,
                                           const int8_t *x, int32_t values, int8_t *y)
{
    const mcud_finish_s8 finish = *to;
    int32_t left = channels;
    if (values % 4 == 0) {
        const int8_t *const ends[2] = {x + (values & 28), x + values};
        if (left >= 4) {
            record = mcud_records_1x4(x, ends, record, &finish, y, left & ~3);
            y += left & ~3;
            left &= 3;
        }
    }
    for (; left >= 4; left -= 4, y += 4) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        record = mcud_dot_row_s8(x, values, record + 4, sums);
        mcud_finish_row_s8(sums, record, &finish, y);
        record += 4 * MCUD_FACTORS;
    }
    return left > 0 ? mcud_ones_s8(to, record, left, x, values, y) : record;
}

#endif
