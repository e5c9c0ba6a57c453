/* The blocks of mcud_wide_s8.c in portable C. */
#ifndef MCUD_WIDE_S8_C_H
#define MCUD_WIDE_S8_C_H

#include "mcud_quant.h"

/* One result of a record: `x` has a pair every `pair_step` pairs, `i` is 0 or 1. */
static int8_t mcud_wide_result(const int16_t *x, int32_t pair_step, const int32_t *record, int32_t i,
                               const mcud_wide_block *block)
{
    int32_t sum = record[i];
    const int32_t *w = record + 2 + i;
    for (int32_t k = 0; k < block->pairs; k++, x += 2 * pair_step, w += 2) {
        sum += x[0] * (int16_t)(*w & 0xFFFF) + x[1] * (*w >> 16);
    }
    return (int8_t)mcud_clamp(block->zero_point + mcud_scale(sum, *w, 32), INT8_MIN, INT8_MAX);
}

static void mcud_wide_4x2(const int16_t *x, const int32_t *record, int8_t *y, const mcud_wide_block *block)
{
    for (int32_t k = 0; k < block->channels; k += 2, record += 4 + 2 * block->pairs) {
        for (int32_t p = 0; p < 4; p++) {
            y[p * block->pitch + k] = mcud_wide_result(x + 2 * p, 4, record, 0, block);
            y[p * block->pitch + k + 1] = mcud_wide_result(x + 2 * p, 4, record, 1, block);
        }
    }
}

static void mcud_wide_3x2(const int16_t *x, const int32_t *record, int8_t *y, const mcud_wide_block *block)
{
    for (int32_t k = 0; k < block->channels; k += 2, record += 4 + 2 * block->pairs) {
        for (int32_t p = 0; p < 3; p++) {
            const int16_t *pixel = x + p * (block->step / 2);
            y[p * block->pitch + k] = mcud_wide_result(pixel, 1, record, 0, block);
            y[p * block->pitch + k + 1] = mcud_wide_result(pixel, 1, record, 1, block);
        }
    }
}

static void mcud_wide_1x4(const int16_t *x, const int32_t *record, int8_t *y, const mcud_wide_block *block)
{
    for (int32_t k = 0; k < block->channels; k += 4, record += 2 * (4 + 2 * block->pairs)) {
        const int32_t *const neighbour = record + block->step / 4;
        for (int32_t i = 0; i < 2; i++) {
            y[k + i] = mcud_wide_result(x, 1, record, i, block);
            y[k + 2 + i] = mcud_wide_result(x, 1, neighbour, i, block);
        }
    }
}

#endif
