/* The blocks of mcud_wide_s8.c in portable C. */
#ifndef MCUD_WIDE_S8_C_H
#define MCUD_WIDE_S8_C_H

#include "mcud_quant.h"

/* One result of a record: `x` has a pair every `pair_step` pairs, `i` is 0 or 1. */
static int8_t mcud_wide_result(const int16_t *x, int32_t pair_step, const int32_t *record, int32_t i,
                               const mcud_wide_s8 *by)
{
    int32_t sum = record[i];
    const int32_t *w = record + 2 + i;
    for (int32_t k = 0; k < by->pairs; k++, x += 2 * pair_step, w += 2) {
        sum += x[0] * (int16_t)(*w & 0xFFFF) + x[1] * (*w >> 16);
    }
    const mcud_finish_s8 finish = {by->zero_point, 0, 0};
    return MCUD_RESULT_S8(sum, w, 2, &finish);
}

static void mcud_wide_4x2(const int16_t *x, const int32_t *record, int8_t *y, const mcud_wide_s8 *by)
{
    for (int32_t k = 0; k < by->channels; k += 2, record += mcud_wide_words(by)) {
        for (int32_t p = 0; p < 4; p++) {
            y[p * by->pitch + k] = mcud_wide_result(x + 2 * p, 4, record, 0, by);
            y[p * by->pitch + k + 1] = mcud_wide_result(x + 2 * p, 4, record, 1, by);
        }
    }
}

static void mcud_wide_3x2(const int16_t *x, const int32_t *record, int8_t *y, const mcud_wide_s8 *by, int32_t blocks)
{
    for (int32_t k = 0; k < by->channels; k += 2, record += mcud_wide_words(by)) {
        for (int32_t p = 0; p < 3 * blocks; p++) {
            const int16_t *pixel = x + p * (by->step / 2);
            y[p * by->pitch + k] = mcud_wide_result(pixel, 1, record, 0, by);
            y[p * by->pitch + k + 1] = mcud_wide_result(pixel, 1, record, 1, by);
        }
    }
}

static void mcud_wide_1x4(const int16_t *x, const int32_t *record, int8_t *y, const mcud_wide_s8 *by)
{
    for (int32_t k = 0; k < by->channels; k += 4, record += 2 * mcud_wide_words(by)) {
        const int32_t *const neighbour = record + by->step / 4;
        for (int32_t i = 0; i < 2; i++) {
            y[k + i] = mcud_wide_result(x, 1, record, i, by);
            y[k + 2 + i] = mcud_wide_result(x, 1, neighbour, i, by);
        }
    }
}

void mcud_wide_expand_fours(int16_t *x, const int8_t *const pixels[4], int32_t fours)
{
    for (int32_t i = 0; i < 4 * fours; i += 4, x += 16) {
        for (int32_t p = 0; p < 4; p++) {
            x[2 * p] = pixels[p][i];
            x[2 * p + 1] = pixels[p][i + 2];
            x[2 * p + 8] = pixels[p][i + 1];
            x[2 * p + 9] = pixels[p][i + 3];
        }
    }
}

#endif
