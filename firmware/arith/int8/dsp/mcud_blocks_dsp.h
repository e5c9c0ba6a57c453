/* The blocks of the DSP extension in C, for compilers that do not accept them in assembler: see mcud_compiler.h. The
 * functions are those of mcud_simd_dsp.h and mcud_taps_dsp.h, and give the same bits. Groups up to ends[0] are summed
 * singly, the others up to ends[1] by MCUD_TURN groups at a time. */
#ifndef MCUD_BLOCKS_DSP_H
#define MCUD_BLOCKS_DSP_H

#include "mcud_dsp.h"

/* Groups that are summed in a turn of the inner loop. */
#define MCUD_TURN 4

/* One group of three pixels and two channels. */
MCUD_BLOCK void mcud_group_3x2(const int32_t *x, const int32_t *w, int32_t sums[6])
{
    int32_t w0 = mcud_even_bytes(w[0]);
    int32_t w1 = mcud_even_bytes(w[1]);
    for (int32_t half = 0; half < 2; half++, x += 3) {
        sums[0] = mcud_add_products(x[0], w0, sums[0]);
        sums[1] = mcud_add_products(x[0], w1, sums[1]);
        sums[2] = mcud_add_products(x[1], w0, sums[2]);
        sums[3] = mcud_add_products(x[1], w1, sums[3]);
        sums[4] = mcud_add_products(x[2], w0, sums[4]);
        sums[5] = mcud_add_products(x[2], w1, sums[5]);
        w0 = mcud_odd_bytes(w[0]);
        w1 = mcud_odd_bytes(w[1]);
    }
}

/* Multiplies x[groups] of 3 pixels with an even number of channels to y[3][channels], whose pixels are `pitch` apart. */
static inline const int32_t *mcud_records_3x2(const int16_t *x, const int16_t *const ends[2], const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y, int32_t channels)
{
    const int32_t *const some = (const int32_t *)(const void *)ends[0];
    const int32_t *const end = (const int32_t *)(const void *)ends[1];
    const mcud_finish_s8 by = *finish; /* a copy, since a store to y might change *finish */
    for (const int8_t *const last = y + channels; y < last; y += 2, record += 2 * MCUD_FACTORS) {
        const int32_t *pairs = (const int32_t *)(const void *)x;
        int32_t sums[6] = {record[0], record[1], record[0], record[1], record[0], record[1]};
        for (record += 2; pairs < some; pairs += 6, record += 2) {
            mcud_group_3x2(pairs, record, sums);
        }
        for (; pairs < end; pairs += 6 * MCUD_TURN, record += 2 * MCUD_TURN) {
            for (int32_t i = 0; i < MCUD_TURN; i++) {
                mcud_group_3x2(pairs + 6 * i, record + 2 * i, sums);
            }
        }
        int8_t *to = y;
        for (int32_t i = 0; i < 6; i += 2, to += by.pitch) {
            to[0] = MCUD_RESULT_S8(sums[i], record, 2, &by);
            to[1] = MCUD_RESULT_S8(sums[i + 1], record + 1, 2, &by);
        }
    }
    return record;
}

/* One group of two pixels and two channels. */
MCUD_BLOCK void mcud_group_2x2(const int32_t *x, const int32_t *w, int32_t sums[4])
{
    for (int32_t i = 0; i < 2; i++) {
        const int32_t even = mcud_even_bytes(w[i]);
        const int32_t odd = mcud_odd_bytes(w[i]);
        sums[i] = mcud_add_products(x[0], even, sums[i]);
        sums[2 + i] = mcud_add_products(x[1], even, sums[2 + i]);
        sums[i] = mcud_add_products(x[2], odd, sums[i]);
        sums[2 + i] = mcud_add_products(x[3], odd, sums[2 + i]);
    }
}

/* The same for 2 pixels. */
static inline const int32_t *mcud_records_2x2(const int16_t *x, const int16_t *const ends[2], const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y, int32_t channels)
{
    const int32_t *const some = (const int32_t *)(const void *)ends[0];
    const int32_t *const end = (const int32_t *)(const void *)ends[1];
    const mcud_finish_s8 by = *finish; /* a copy, since a store to y might change *finish */
    for (const int8_t *const last = y + channels; y < last; y += 2, record += 2 * MCUD_FACTORS) {
        const int32_t *pairs = (const int32_t *)(const void *)x;
        int32_t sums[4] = {record[0], record[1], record[0], record[1]};
        for (record += 2; pairs < some; pairs += 4, record += 2) {
            mcud_group_2x2(pairs, record, sums);
        }
        for (; pairs < end; pairs += 4 * MCUD_TURN, record += 2 * MCUD_TURN) {
            for (int32_t i = 0; i < MCUD_TURN; i++) {
                mcud_group_2x2(pairs + 4 * i, record + 2 * i, sums);
            }
        }
        y[0] = MCUD_RESULT_S8(sums[0], record, 2, &by);
        y[1] = MCUD_RESULT_S8(sums[1], record + 1, 2, &by);
        y[by.pitch] = MCUD_RESULT_S8(sums[2], record, 2, &by);
        y[by.pitch + 1] = MCUD_RESULT_S8(sums[3], record + 1, 2, &by);
    }
    return record;
}

/* Adds the products of x[groups][4] and w[groups][4][4], and returns the record after the weights. */
MCUD_BLOCK const int32_t *mcud_groups_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *w,
                                          int32_t sums[4])
{
    for (; x < ends[0]; x += 4, w += 4) {
        mcud_group_1x4(x, w, sums);
    }
    for (; x < ends[1]; x += 4 * MCUD_TURN, w += 4 * MCUD_TURN) {
        for (int32_t i = 0; i < MCUD_TURN; i++) {
            mcud_group_1x4(x + 4 * i, w + 4 * i, sums);
        }
    }
    return w;
}

/* Multiplies x[groups][4] with channels, a multiple of four, to y[channels]. */
static inline const int32_t *mcud_records_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y, int32_t channels)
{
    const mcud_finish_s8 by = *finish;
    for (const int8_t *const last = y + channels; y < last; y += 4, record += 4 * MCUD_FACTORS) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        record = mcud_groups_1x4(x, ends, record + 4, sums);
        for (int32_t i = 0; i < 4; i++) {
            y[i] = MCUD_RESULT_S8(sums[i], record + i, 4, &by);
        }
    }
    return record;
}

/* Adds the products of x[groups][4] and w[groups][4][4]. */
static inline void mcud_sum_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *w, int32_t sums[4])
{
    int32_t s[4] = {sums[0], sums[1], sums[2], sums[3]}; /* in registers */
    (void)mcud_groups_1x4(x, ends, w, s);
    memcpy(sums, s, sizeof s);
}

/* One pair of taps, four channels. */
MCUD_BLOCK void mcud_tap_pair(const int8_t *first, const int8_t *second, const int32_t *w, int32_t sums[4])
{
    const int32_t x = mcud_load_word(first);
    const int32_t z = mcud_load_word(second);
    const int32_t low = mcud_lower_halves(x, z);
    const int32_t high = mcud_upper_halves(x, z);
    sums[0] = mcud_add_products(mcud_even_bytes(low), mcud_even_bytes(w[0]), sums[0]);
    sums[1] = mcud_add_products(mcud_odd_bytes(low), mcud_odd_bytes(w[0]), sums[1]);
    sums[2] = mcud_add_products(mcud_even_bytes(high), mcud_even_bytes(w[1]), sums[2]);
    sums[3] = mcud_add_products(mcud_odd_bytes(high), mcud_odd_bytes(w[1]), sums[3]);
}

/* See mcud_taps_dsp.h. */
static inline const int32_t *mcud_record_taps(const int8_t *const *taps, const int8_t *const *const ends[2],
                                              const int8_t *odd, int32_t at, const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y)
{
    const mcud_finish_s8 by = *finish;
    int32_t sums[4] = {record[0], record[1], record[2], record[3]};
    for (record += 4; taps < ends[0]; taps += 2, record += 2) {
        mcud_tap_pair(taps[0] + at, taps[1] + at, record, sums);
    }
    for (; taps < ends[1]; taps += 2 * MCUD_TURN, record += 2 * MCUD_TURN) {
        for (int32_t i = 0; i < MCUD_TURN; i++) {
            mcud_tap_pair(taps[2 * i] + at, taps[2 * i + 1] + at, record + 2 * i, sums);
        }
    }
    if (odd != NULL) {
        const int8_t *const w = (const int8_t *)record;
        for (int32_t i = 0; i < 4; i++) {
            sums[i] += odd[at + i] * w[i];
        }
        record++;
    }
    for (int32_t i = 0; i < 4; i++) {
        y[i] = MCUD_RESULT_S8(sums[i], record + i, 4, &by);
    }
    return record + 4 * MCUD_FACTORS;
}

#endif
