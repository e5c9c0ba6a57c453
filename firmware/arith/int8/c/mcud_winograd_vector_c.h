/* mcud_winograd_vector.h in portable C. */
#ifndef MCUD_WINOGRAD_VECTOR_C_H
#define MCUD_WINOGRAD_VECTOR_C_H

#include "mcud_winograd_results_c.h"

/* Values in a vector of each of the two tiles. */
enum { MCUD_PAIR_OF_EIGHTS = MCUD_TILES * MCUD_EIGHT };

static inline void mcud_transform_six(const int32_t d[6], int16_t *to, int32_t step)
{
    const int32_t v = d[4] - d[2];
    const int32_t g = 2 * (d[3] - d[1]);
    const int32_t p = d[4] - 4 * d[2];
    const int32_t q = d[3] - 4 * d[1];
    to[0] = (int16_t)(4 * (d[0] - d[2]) + v);
    to[step] = (int16_t)(p + q);
    to[2 * step] = (int16_t)(p - q);
    to[3 * step] = (int16_t)(v + g);
    to[4 * step] = (int16_t)(v - g);
    to[5 * step] = (int16_t)(d[5] - d[3] - 2 * g);
}

static inline void mcud_transform_columns(const int8_t *const from[6], int16_t *to, int32_t columns, int32_t groups)
{
    const int32_t step = MCUD_INPUT * groups * MCUD_PAIR_OF_EIGHTS;
    for (int32_t k = 0; k < columns * groups; k++) {
        for (int32_t i = k * MCUD_EIGHT; i < (k + 1) * MCUD_EIGHT; i++) {
            const int32_t d[6] = {from[0][i], from[1][i], from[2][i], from[3][i], from[4][i], from[5][i]};
            mcud_transform_six(d, to + k * MCUD_EIGHT + i, step);
        }
    }
}

static inline void mcud_transform_rows(int16_t *tile, int32_t groups)
{
    const int32_t step = groups * MCUD_PAIR_OF_EIGHTS;
    for (int32_t row = 0; row < MCUD_INPUT; row++, tile += MCUD_INPUT * step) {
        for (int32_t k = 0; k < groups; k++) {
            for (int32_t i = 0; i < MCUD_EIGHT; i++) {
                int16_t *const at = tile + k * MCUD_PAIR_OF_EIGHTS + i;
                const int32_t d[6] = {at[0],        at[step],     at[2 * step],
                                      at[3 * step], at[4 * step], at[5 * step]};
                mcud_transform_six(d, at, step);
            }
        }
    }
}

static inline void mcud_multiply_eights(const int32_t *weights, const int16_t *tiles, int32_t *sums, int32_t groups)
{
    const int16_t *w = (const int16_t *)(const void *)weights;
    for (int32_t position = 0; position < MCUD_POSITIONS; position++, sums += MCUD_TILES * MCUD_FOUR) {
        uint32_t s[MCUD_TILES * MCUD_FOUR] = {0};
        for (int32_t k = 0; k < groups; k++, w += MCUD_FOUR * MCUD_EIGHT, tiles += MCUD_PAIR_OF_EIGHTS) {
            for (int32_t at = 0; at < MCUD_TILES * MCUD_FOUR; at++) {
                const int16_t *const x = tiles + at / MCUD_FOUR * MCUD_EIGHT;
                for (int32_t i = 0; i < MCUD_EIGHT; i++) {
                    s[at] += (uint32_t)(x[i] * w[at % MCUD_FOUR * MCUD_EIGHT + i]);
                }
            }
        }
        for (int32_t at = 0; at < MCUD_TILES * MCUD_FOUR; at++) {
            sums[at] = (int32_t)s[at];
        }
    }
}

static inline void mcud_finish_four(int32_t *sums, const int32_t *factors, const mcud_four_results *to)
{
    enum { NEXT = MCUD_TILES * MCUD_FOUR }; /* from a position to the next one */
    for (int32_t channel = 0; channel < MCUD_FOUR; channel++, factors += MCUD_FACTORS == 2 ? 1 : 2) {
        uint32_t *m = (uint32_t *)sums + channel;
        m[(MCUD_INPUT + 1) * NEXT] += (uint32_t)factors[0];
        for (int32_t j = 0; j < MCUD_INPUT; j++) {
            mcud_results_6(m + j * NEXT, MCUD_INPUT * NEXT, 3, m + j * NEXT, MCUD_INPUT * NEXT);
        }
        int8_t *y = to->y + channel;
        for (int32_t i = 0; i < MCUD_RESULTS; i++, m += MCUD_INPUT * NEXT, y += to->row) {
            uint32_t t[MCUD_RESULTS];
            mcud_results_6(m, NEXT, 3, t, 1);
            for (int32_t j = 0; j < MCUD_RESULTS; j++) {
                const int32_t sum = (int32_t)(t[j] * 0x38E38E39u); /* by 1 / 9 */
#if MCUD_FACTORS == 2
                const mcud_finish_s8 finish = {to->zero, 0, 0};
                y[j * to->pixel] = MCUD_RESULT_BY_VECTORS(sum >> 6, factors + MCUD_FOUR, MCUD_FOUR, &finish);
#else
                const int64_t product = (int64_t)sum * factors[1];
                y[j * to->pixel] = (int8_t)mcud_clamp(((int32_t)(product >> 32) + to->zero + 32) >> 6, INT8_MIN, INT8_MAX);
#endif
            }
        }
    }
}

#endif
