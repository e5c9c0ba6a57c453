/* mcud_simd.h in portable C. Weights are read byte by byte, as a little-endian machine stores them. */
#ifndef MCUD_SIMD_C_H
#define MCUD_SIMD_C_H

#include "mcud_compiler.h"
#include "mcud_quant.h"

/* clamp(value, -128, 127) */
static inline int8_t mcud_saturate_s8(int32_t value)
{
    return (int8_t)mcud_clamp(value, INT8_MIN, INT8_MAX);
}

/* clamp(sum * 2^left, INT32_MIN, INT32_MAX), left > 0: without 64 bits, which compilers would carry on to products */
static inline int32_t mcud_shift_saturated(int32_t sum, int32_t left)
{
    const int32_t most = INT32_MAX >> left;
    return sum > most ? INT32_MAX : (sum < -most - 1 ? INT32_MIN : (int32_t)((uint32_t)sum << left));
}

/* The first step of a sum that is rounded twice. */
static inline int32_t mcud_scale_once(int32_t sum, int32_t multiplier)
{
    return sum + mcud_scale(sum, multiplier, 32);
}

#if MCUD_FACTORS == 2 && defined(__thumb__) && !defined(__thumb2__)

/* The second step has products of one word: powers of at least 2^(32 - MCUD_LAST_PLACES) count by their upper bits.
 * conv_twice.py keeps the products below 2^31, except with a shift to the left. */
enum { MCUD_LAST_PLACES = 13 };

static inline int32_t mcud_last_factor(int32_t power)
{
    return power >> (32 - MCUD_LAST_PLACES);
}

/* Whether the second step by a power needs a product of two words. */
static inline int32_t mcud_is_wide(int32_t power)
{
    return mcud_last_factor(power) == 0;
}

MCUD_NOINLINE int8_t mcud_requantize_wide(int32_t once, int32_t power, int32_t zero_point, int32_t left)
{
    if (left > 0) {
        once = mcud_shift_saturated(once, left);
    }
    return mcud_saturate_s8(zero_point + mcud_scale(once, power, 32));
}

/* The second step. All halves are rounded away from zero: an even power has its negative results clipped. */
static inline int8_t mcud_requantize_s8(int32_t once, int32_t power, const mcud_finish_s8 *finish)
{
    if (finish->left > 0 || mcud_is_wide(power)) {
        return mcud_requantize_wide(once, power, finish->zero_point, finish->left);
    }
    const int32_t zero = finish->zero_point * (1 << MCUD_LAST_PLACES) + (1 << (MCUD_LAST_PLACES - 1));
    const int32_t product = once * mcud_last_factor(power);
    return mcud_saturate_s8((product + (product >> 31) + zero) >> MCUD_LAST_PLACES);
}

#else

static inline int32_t mcud_is_wide(int32_t power)
{
    (void)power;
    return 0;
}

/* A sum to a result; see mcud_finish_s8. */
static inline int8_t mcud_requantize_s8(int32_t sum, int32_t multiplier, const mcud_finish_s8 *finish)
{
    if (finish->left > 0) {
        sum = mcud_shift_saturated(sum, finish->left);
    }
    return mcud_saturate_s8(finish->zero_point + mcud_scale(sum, multiplier, 32));
}

#endif

/* Four values of one pixel to its place in a group of `pixels` pixels. */
static inline void mcud_expand_four(int16_t *to, const int8_t *from, int32_t pixels)
{
    to[0] = from[0];
    to[1] = from[2];
    to[2 * pixels] = from[1];
    to[2 * pixels + 1] = from[3];
}

/* The same value four times. */
static inline void mcud_expand_same(int16_t *to, int32_t value, int32_t pixels)
{
    to[0] = to[1] = to[2 * pixels] = to[2 * pixels + 1] = (int16_t)value;
}

/* The products of one pixel's place in a group of `pixels` pixels and one channel's weights. */
static inline int32_t mcud_products(const int16_t *x, int32_t pixels, const int8_t *w)
{
    return x[0] * w[0] + x[2 * pixels] * w[1] + x[1] * w[2] + x[2 * pixels + 1] * w[3];
}

/* A step to sums[count] that rarely takes place, and then for all of them: so `finish` has none left. */
static inline void mcud_shift_sums(int32_t *sums, int32_t count, mcud_finish_s8 *finish)
{
    for (int32_t i = 0; finish->left > 0 && i < count; i++) {
        sums[i] = mcud_shift_saturated(sums[i], finish->left);
    }
    finish->left = 0;
}

#if MCUD_FACTORS == 2
/* The results of two channels by any factors. These are rare: the usual ones are not asked for each result. */
MCUD_NOINLINE void mcud_results_by_any(const int32_t *sums, int32_t pixels, const int32_t *factors,
                                       const mcud_finish_s8 *finish, int8_t *y)
{
    for (int32_t i = 0; i < 2 * pixels; i++) {
        y[i / 2 * finish->pitch + i % 2] = MCUD_RESULT_S8(sums[i], factors + i % 2, 2, finish);
    }
}
#endif

/* The results of two channels of `pixels` pixels. What the loop reads is copied: results could lie there. */
static inline void mcud_results_of_two(int32_t *sums, int32_t pixels, const int32_t *factors,
                                       const mcud_finish_s8 *finish, int8_t *y)
{
    mcud_finish_s8 to = *finish;
    const int32_t first[2] = {factors[0], factors[2 * (MCUD_FACTORS - 1)]};
    const int32_t second[2] = {factors[1], factors[2 * MCUD_FACTORS - 1]};
#if MCUD_FACTORS == 2
    if (to.left > 0 || mcud_is_wide(first[1]) || mcud_is_wide(second[1])) {
        mcud_results_by_any(sums, pixels, factors, finish, y);
        return;
    }
#endif
    mcud_shift_sums(sums, 2 * pixels, &to);
#if defined(__GNUC__) && defined(__thumb__) && !defined(__thumb2__)
#pragma GCC unroll 3 /* clamps are branches here: in a loop they hide how often it runs from the bounds of a program */
#endif
    for (const int32_t *const end = sums + 2 * pixels; sums < end; sums += 2, y += to.pitch) {
        y[0] = MCUD_RESULT_S8(sums[0], first, 1, &to);
        y[1] = MCUD_RESULT_S8(sums[1], second, 1, &to);
    }
}

/* The results of four channels of one pixel. */
static inline void mcud_results_of_four(const int32_t sums[4], const int32_t *factors, const mcud_finish_s8 *finish,
                                        int8_t *y)
{
    const mcud_finish_s8 to = *finish;
    y[0] = MCUD_RESULT_S8(sums[0], factors, 4, &to);
    y[1] = MCUD_RESULT_S8(sums[1], factors + 1, 4, &to);
    y[2] = MCUD_RESULT_S8(sums[2], factors + 2, 4, &to);
    y[3] = MCUD_RESULT_S8(sums[3], factors + 3, 4, &to);
}

/* Without optimisation, or with one register taken for position-independent code, there are too few for the blocks. */
#if MCUD_BLOCKS && defined(__thumb__) && !defined(__thumb2__) && defined(__OPTIMIZE__) && !defined(__pic__) &&          \
    !defined(__clang__)
#include "mcud_simd_thumb.h"
#else

/* Adds the products of one value of three pixels, `x` their first one's, and two channels. */
static inline void mcud_value_3x2(const int16_t *x, int32_t w0, int32_t w1, int32_t sums[6])
{
    sums[0] += x[0] * w0;
    sums[1] += x[0] * w1;
    sums[2] += x[2] * w0;
    sums[3] += x[2] * w1;
    sums[4] += x[4] * w0;
    sums[5] += x[4] * w1;
}

/* x[groups] of 3 pixels -> y[3][2], the pixels `pitch` apart */
MCUD_NOINLINE const int32_t *mcud_record_3x2(const int16_t *x, const int16_t *const ends[2],
                                             const int32_t *record, const mcud_finish_s8 *finish, int8_t *y)
{
    int32_t sums[6] = {record[0], record[1], record[0], record[1], record[0], record[1]};
    for (record += 2; x < ends[1]; x += 12, record += 2) {
        const int8_t *w = (const int8_t *)record;
        mcud_value_3x2(x, w[0], w[4], sums);
        mcud_value_3x2(x + 6, w[1], w[5], sums);
        mcud_value_3x2(x + 1, w[2], w[6], sums);
        mcud_value_3x2(x + 7, w[3], w[7], sums);
    }
    mcud_results_of_two(sums, 3, record, finish, y);
    return record + 2 * MCUD_FACTORS;
}

/* Adds the products of one value of two pixels and two channels. */
static inline void mcud_value_2x2(int32_t x0, int32_t x1, int32_t w0, int32_t w1, int32_t sums[4])
{
    sums[0] += x0 * w0;
    sums[1] += x0 * w1;
    sums[2] += x1 * w0;
    sums[3] += x1 * w1;
}

/* x[groups] of 2 pixels -> y[2][2] */
MCUD_NOINLINE const int32_t *mcud_record_2x2(const int16_t *x, const int16_t *const ends[2],
                                             const int32_t *record, const mcud_finish_s8 *finish, int8_t *y)
{
    int32_t sums[4] = {record[0], record[1], record[0], record[1]};
    for (record += 2; x < ends[1]; x += 8, record += 2) {
        const int8_t *w = (const int8_t *)record;
        mcud_value_2x2(x[0], x[2], w[0], w[4], sums);
        mcud_value_2x2(x[4], x[6], w[1], w[5], sums);
        mcud_value_2x2(x[1], x[3], w[2], w[6], sums);
        mcud_value_2x2(x[5], x[7], w[3], w[7], sums);
    }
    mcud_results_of_two(sums, 2, record, finish, y);
    return record + 2 * MCUD_FACTORS;
}

#endif

/* Two records at a time, as long as there are two. */
#if MCUD_BLOCKS && defined(__riscv_mul) && __riscv_xlen == 32 && !defined(__riscv_32e) && defined(__OPTIMIZE__)
#include "mcud_simd_riscv.h"
#define MCUD_FOURS 1
#else
#define MCUD_FOURS 0
#endif

/* x[groups] of 3 pixels by an even number of channels -> y[3][channels], the pixels `pitch` apart */
static inline const int32_t *mcud_records_3x2(const int16_t *x, const int16_t *const ends[2],
                                              const int32_t *record, const mcud_finish_s8 *finish, int8_t *y,
                                              int32_t channels)
{
#if MCUD_FOURS
    record = mcud_records_3x4(x, ends, record, finish, y, channels & ~3);
    y += channels & ~3;
    channels &= 3;
#endif
    for (const int8_t *last = y + channels; y < last; y += 2) {
        record = mcud_record_3x2(x, ends, record, finish, y);
    }
    return record;
}

/* The same for 2 pixels. */
static inline const int32_t *mcud_records_2x2(const int16_t *x, const int16_t *const ends[2],
                                              const int32_t *record, const mcud_finish_s8 *finish, int8_t *y,
                                              int32_t channels)
{
#if MCUD_FOURS
    record = mcud_records_2x4(x, ends, record, finish, y, channels & ~3);
    y += channels & ~3;
    channels &= 3;
#endif
    for (const int8_t *last = y + channels; y < last; y += 2) {
        record = mcud_record_2x2(x, ends, record, finish, y);
    }
    return record;
}

/* The first one of 2 expanded pixels by an even number of channels -> y[channels] */
static inline const int32_t *mcud_records_1x2(const int16_t *x, const int16_t *const ends[2],
                                              const int32_t *record, const mcud_finish_s8 *finish, int8_t *y,
                                              int32_t channels)
{
    const mcud_finish_s8 to = *finish;
    for (const int8_t *last = y + channels; y < last; y += 2, record += 2 * MCUD_FACTORS) {
        const int16_t *at = x;
        int32_t a = record[0];
        int32_t b = record[1];
        for (record += 2; at < ends[1]; at += 8, record += 2) {
            const int8_t *w = (const int8_t *)record;
            a += mcud_products(at, 2, w);
            b += mcud_products(at, 2, w + 4);
        }
        y[0] = MCUD_RESULT_S8(a, record, 2, &to);
        y[1] = MCUD_RESULT_S8(b, record + 1, 2, &to);
    }
    return record;
}

/* Adds one group of one pixel and four channels: x[4], w[4][4]. */
static inline void mcud_group_1x4(const int8_t x[4], const int32_t weights[4], int32_t sums[4])
{
    const int8_t *w = (const int8_t *)weights;
    sums[0] += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
    sums[1] += x[0] * w[4] + x[1] * w[5] + x[2] * w[6] + x[3] * w[7];
    sums[2] += x[0] * w[8] + x[1] * w[9] + x[2] * w[10] + x[3] * w[11];
    sums[3] += x[0] * w[12] + x[1] * w[13] + x[2] * w[14] + x[3] * w[15];
}

/* Adds one group of one pixel and one channel: x[4], w[4]. */
static inline int32_t mcud_group_1x1(const int8_t x[4], const int32_t *weights, int32_t sum)
{
    const int8_t *w = (const int8_t *)weights;
    return sum + x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
}

#if !defined(MCUD_SUM_1X4)
/* Adds the products of x[groups][4] and w[groups][4][4]. */
static inline void mcud_sum_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *w,
                                int32_t sums[4])
{
    for (; x < ends[1]; x += 4, w += 4) {
        mcud_group_1x4(x, w, sums);
    }
}
#endif

/* x[groups][4] -> y[4] */
MCUD_NOINLINE const int32_t *mcud_record_1x4(const int8_t *x, const int8_t *const ends[2],
                                             const int32_t *record, const mcud_finish_s8 *finish, int8_t *y)
{
    int32_t sums[4] = {record[0], record[1], record[2], record[3]};
    mcud_sum_1x4(x, ends, record + 4, sums);
    record += 4 + (ends[1] - x);
    mcud_results_of_four(sums, record, finish, y);
    return record + 4 * MCUD_FACTORS;
}

/* x[groups][4] by channels, a multiple of four -> y[channels] */
static inline const int32_t *mcud_records_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y, int32_t channels)
{
    for (const int8_t *last = y + channels; y < last; y += 4) {
        record = mcud_record_1x4(x, ends, record, finish, y);
    }
    return record;
}

/* Adds the products of four channels, `at` bytes after the first `count` taps of a window; see mcud_record_taps. */
static inline void mcud_sum_taps(const int8_t *const *taps, int32_t count, int32_t at, const int32_t *record,
                                 int32_t sums[4])
{
    for (; count > 1; taps += 2, record += 2, count -= 2) {
        const int8_t *first = taps[0] + at;
        const int8_t *second = taps[1] + at;
        const int8_t *w = (const int8_t *)record;
        sums[0] += first[0] * w[0] + second[0] * w[2];
        sums[1] += first[1] * w[1] + second[1] * w[3];
        sums[2] += first[2] * w[4] + second[2] * w[6];
        sums[3] += first[3] * w[5] + second[3] * w[7];
    }
    if (count > 0) {
        const int8_t *first = taps[0] + at;
        const int8_t *w = (const int8_t *)record;
        sums[0] += first[0] * w[0];
        sums[1] += first[1] * w[1];
        sums[2] += first[2] * w[2];
        sums[3] += first[3] * w[3];
    }
}

/* Four channels, `at` bytes after the taps of a window -> y[4]. Taps are taken two by two: their weights
 * are (first, first, second, second) of channels 0 and 1, then of channels 2 and 3. `odd` is a last tap of
 * its own, or NULL. */
MCUD_NOINLINE const int32_t *mcud_record_taps(const int8_t *const *taps, const int8_t *const *const ends[2],
                                              const int8_t *odd, int32_t at, const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y)
{
    int32_t sums[4] = {record[0], record[1], record[2], record[3]};
    for (record += 4; taps < ends[1]; taps += 2, record += 2) {
        const int8_t *first = taps[0] + at;
        const int8_t *second = taps[1] + at;
        const int8_t *w = (const int8_t *)record;
        sums[0] += first[0] * w[0] + second[0] * w[2];
        sums[1] += first[1] * w[1] + second[1] * w[3];
        sums[2] += first[2] * w[4] + second[2] * w[6];
        sums[3] += first[3] * w[5] + second[3] * w[7];
    }
    if (odd != 0) {
        const int8_t *w = (const int8_t *)record;
        sums[0] += odd[at] * w[0];
        sums[1] += odd[at + 1] * w[1];
        sums[2] += odd[at + 2] * w[2];
        sums[3] += odd[at + 3] * w[3];
        record++;
    }
    mcud_results_of_four(sums, record, finish, y);
    return record + 4 * MCUD_FACTORS;
}

#endif
