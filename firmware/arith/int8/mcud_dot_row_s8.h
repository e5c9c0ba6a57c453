/* One pixel times int8 weights, read where it is, row by row: for outputs of a single pixel. Four channels
 * are summed at a time, with records of mcud_records_1x4; the depth is that of all rows, each one filled up
 * to whole groups. */
#ifndef MCUD_DOT_ROW_S8_H
#define MCUD_DOT_ROW_S8_H

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
    if (values > 0) { /* bytes after a row must not be read */
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

/* Requantises the sums of up to four channels to y[count]. */
static inline void mcud_finish_row_s8(const int32_t sums[4], const int32_t *multipliers,
                                      const mcud_finish_s8 *finish, int32_t count, int8_t *y)
{
    for (int32_t i = 0; i < count && i < 4; i++) {
        y[i] = mcud_requantize_s8(sums[i], multipliers[i], finish);
    }
}

/* x[values] -> y[channels]; fastest if values are a multiple of 4. Returns the record after those used. */
static inline const int32_t *mcud_pixel_s8(const mcud_finish_s8 *to, const int32_t *record, int32_t channels,
                                           const int8_t *x, int32_t values, int8_t *y)
{
    const mcud_finish_s8 finish = *to;
    if (values % 4 == 0) {
        const int8_t *const ends[2] = {x + (values & 28), x + values};
        int8_t last[4]; /* results of a record that the output has no room for */
        for (int32_t left = channels; left > 0;) {
            const int32_t fours = left < 4 ? 4 : left & ~3;
            record = mcud_records_1x4(x, ends, record, &finish, left < 4 ? last : y, fours);
            y += fours;
            left -= fours;
        }
        for (int32_t i = channels & 3; i > 0; i--) {
            y[i - 5] = last[i - 1];
        }
        return record;
    }
    for (int32_t left = channels; left > 0; left -= 4, y += 4) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        record = mcud_dot_row_s8(x, values, record + 4, sums);
        mcud_finish_row_s8(sums, record, &finish, left, y);
        record += 4;
    }
    return record;
}

#endif
