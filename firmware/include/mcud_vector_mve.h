/* mcud_vector.h by intrinsics of the M-profile Vector Extension. */
#ifndef MCUD_VECTOR_MVE_H
#define MCUD_VECTOR_MVE_H

#include <arm_mve.h>

/* to[bytes] = from[bytes] */
static inline void mcud_vector_copy(void *to, const void *from, int32_t bytes)
{
    int8_t *y = to;
    const int8_t *x = from;
    for (; bytes >= 16; bytes -= 16, x += 16, y += 16) {
        vst1q_s8(y, vld1q_s8(x));
    }
    if (bytes > 0) {
        const mve_pred16_t rest = vctp8q((uint32_t)bytes);
        vst1q_p_s8(y, vld1q_z_s8(x, rest), rest);
    }
}

/* to[bytes], all `value` */
static inline void mcud_vector_fill(void *to, int32_t value, int32_t bytes)
{
    int8_t *y = to;
    for (; bytes > 0; bytes -= 16, y += 16) {
        vst1q_p_s8(y, vdupq_n_s8((int8_t)value), vctp8q((uint32_t)bytes));
    }
}

/* sum * 2^left, saturated */
static inline int32_t mcud_vector_scale_up(int32_t sum, int32_t left)
{
    return sqrshr(sum, -left);
}

/* One sum to a result. */
static inline int8_t mcud_vector_result(int32_t sum, int32_t multiplier, const mcud_vector_finish *finish)
{
    int32_t result = finish->left == 0 ? sum : mcud_vector_scale_up(sum, finish->left);
    __asm__("smmlar %0, %0, %1, %2" : "+r"(result) : "r"(multiplier), "r"(finish->zero_point));
    __asm__("ssat %0, #8, %0" : "+r"(result));
    return (int8_t)result;
}

/* 16 values of 3 pixels by 2 channels: 12 instructions with the loop's end. */
static inline const int32_t *mcud_vector_3x2(const int8_t *const x[3], int32_t depth, const int32_t *record,
                                             const mcud_vector_finish *finish, int8_t *y, int32_t pitch)
{
    const int8_t *x0 = x[0];
    const int8_t *x1 = x[1];
    const int8_t *x2 = x[2];
    const int8_t *w = (const int8_t *)(record + 2);
    int32_t a = record[0];
    int32_t b = record[1];
    int32_t c = a;
    int32_t d = b;
    int32_t e = a;
    int32_t f = b;
    for (int32_t n = depth / 16; n > 0; n--, x0 += 16, x1 += 16, x2 += 16, w += 32) {
        const int8x16_t w0 = vld1q_s8(w);
        const int8x16_t w1 = vld1q_s8(w + 16);
        const int8x16_t v0 = vld1q_s8(x0);
        const int8x16_t v1 = vld1q_s8(x1);
        const int8x16_t v2 = vld1q_s8(x2);
        a = vmladavaq_s8(a, v0, w0);
        b = vmladavaq_s8(b, v0, w1);
        c = vmladavaq_s8(c, v1, w0);
        d = vmladavaq_s8(d, v1, w1);
        e = vmladavaq_s8(e, v2, w0);
        f = vmladavaq_s8(f, v2, w1);
    }
    if (depth % 16 != 0) {
        const mve_pred16_t rest = vctp8q((uint32_t)depth % 16);
        const int8x16_t w0 = vld1q_s8(w);
        const int8x16_t w1 = vld1q_s8(w + 16);
        const int8x16_t v0 = vld1q_z_s8(x0, rest);
        const int8x16_t v1 = vld1q_z_s8(x1, rest);
        const int8x16_t v2 = vld1q_z_s8(x2, rest);
        a = vmladavaq_s8(a, v0, w0);
        b = vmladavaq_s8(b, v0, w1);
        c = vmladavaq_s8(c, v1, w0);
        d = vmladavaq_s8(d, v1, w1);
        e = vmladavaq_s8(e, v2, w0);
        f = vmladavaq_s8(f, v2, w1);
        w += 32;
    }
    record = (const int32_t *)(const void *)w;
    y[0] = mcud_vector_result(a, record[0], finish);
    y[1] = mcud_vector_result(b, record[1], finish);
    y += pitch;
    y[0] = mcud_vector_result(c, record[0], finish);
    y[1] = mcud_vector_result(d, record[1], finish);
    y += pitch;
    y[0] = mcud_vector_result(e, record[0], finish);
    y[1] = mcud_vector_result(f, record[1], finish);
    return record + 2;
}

static inline const int32_t *mcud_vector_2x2(const int8_t *const x[2], int32_t depth, const int32_t *record,
                                             const mcud_vector_finish *finish, int8_t *y, int32_t pitch)
{
    const int8_t *x0 = x[0];
    const int8_t *x1 = x[1];
    const int8_t *w = (const int8_t *)(record + 2);
    int32_t a = record[0];
    int32_t b = record[1];
    int32_t c = a;
    int32_t d = b;
    for (int32_t n = depth / 16; n > 0; n--, x0 += 16, x1 += 16, w += 32) {
        const int8x16_t w0 = vld1q_s8(w);
        const int8x16_t w1 = vld1q_s8(w + 16);
        const int8x16_t v0 = vld1q_s8(x0);
        const int8x16_t v1 = vld1q_s8(x1);
        a = vmladavaq_s8(a, v0, w0);
        b = vmladavaq_s8(b, v0, w1);
        c = vmladavaq_s8(c, v1, w0);
        d = vmladavaq_s8(d, v1, w1);
    }
    if (depth % 16 != 0) {
        const mve_pred16_t rest = vctp8q((uint32_t)depth % 16);
        const int8x16_t w0 = vld1q_s8(w);
        const int8x16_t w1 = vld1q_s8(w + 16);
        const int8x16_t v0 = vld1q_z_s8(x0, rest);
        const int8x16_t v1 = vld1q_z_s8(x1, rest);
        a = vmladavaq_s8(a, v0, w0);
        b = vmladavaq_s8(b, v0, w1);
        c = vmladavaq_s8(c, v1, w0);
        d = vmladavaq_s8(d, v1, w1);
        w += 32;
    }
    record = (const int32_t *)(const void *)w;
    y[0] = mcud_vector_result(a, record[0], finish);
    y[1] = mcud_vector_result(b, record[1], finish);
    y[pitch] = mcud_vector_result(c, record[0], finish);
    y[pitch + 1] = mcud_vector_result(d, record[1], finish);
    return record + 2;
}

/* sums[2] += one pixel by the weights of two channels; the weights behind them. */
static inline const int32_t *mcud_vector_dot_1x2(const int8_t *x, int32_t depth, const int32_t *weights, int32_t sums[2])
{
    const int8_t *w = (const int8_t *)weights;
    int32_t a = sums[0];
    int32_t b = sums[1];
    for (int32_t n = depth / 16; n > 0; n--, x += 16, w += 32) {
        const int8x16_t v = vld1q_s8(x);
        a = vmladavaq_s8(a, v, vld1q_s8(w));
        b = vmladavaq_s8(b, v, vld1q_s8(w + 16));
    }
    if (depth % 16 != 0) {
        const int8x16_t v = vld1q_z_s8(x, vctp8q((uint32_t)depth % 16));
        a = vmladavaq_s8(a, v, vld1q_s8(w));
        b = vmladavaq_s8(b, v, vld1q_s8(w + 16));
        w += 32;
    }
    sums[0] = a;
    sums[1] = b;
    return (const int32_t *)(const void *)w;
}

/* Four sums to results that are not narrowed yet. */
static inline int32x4_t mcud_vector_results(int32x4_t sums, const int32_t *multipliers, const mcud_vector_finish *finish)
{
    if (finish->left != 0) {
        sums = vqshlq_r_s32(sums, finish->left);
    }
    return vaddq_n_s32(vrmulhq_s32(sums, vld1q_s32(multipliers)), finish->zero_point);
}

/* `count` channels, at most 16, that lie `at` bytes behind the taps of a window -> y[count]. The sum of two products
 * fits 16 bits. */
static inline const int32_t *mcud_vector_taps(const int8_t *const *taps, int32_t tap_count, int32_t at,
                                              const int32_t *record, const mcud_vector_finish *finish,
                                              int8_t *y, int32_t count)
{
    const mve_pred16_t some = vctp8q((uint32_t)count);
    const int8_t *w = (const int8_t *)(record + 16);
    int32x4_t a = vld1q_s32(record);
    int32x4_t b = vld1q_s32(record + 4);
    int32x4_t c = vld1q_s32(record + 8);
    int32x4_t d = vld1q_s32(record + 12);
    for (int32_t n = tap_count / 2; n > 0; n--, taps += 2, w += 32) {
        int8x16_t x = vld1q_z_s8(taps[0] + at, some);
        int8x16_t k = vld1q_s8(w);
        int16x8_t even = vmullbq_int_s8(x, k);
        int16x8_t odd = vmulltq_int_s8(x, k);
        x = vld1q_z_s8(taps[1] + at, some);
        k = vld1q_s8(w + 16);
        even = vaddq_s16(even, vmullbq_int_s8(x, k));
        odd = vaddq_s16(odd, vmulltq_int_s8(x, k));
        a = vaddq_s32(a, vmovlbq_s16(even));
        b = vaddq_s32(b, vmovltq_s16(even));
        c = vaddq_s32(c, vmovlbq_s16(odd));
        d = vaddq_s32(d, vmovltq_s16(odd));
    }
    if (tap_count % 2 != 0) {
        const int8x16_t x = vld1q_z_s8(taps[0] + at, some);
        const int8x16_t k = vld1q_s8(w);
        const int16x8_t even = vmullbq_int_s8(x, k);
        const int16x8_t odd = vmulltq_int_s8(x, k);
        a = vaddq_s32(a, vmovlbq_s16(even));
        b = vaddq_s32(b, vmovltq_s16(even));
        c = vaddq_s32(c, vmovlbq_s16(odd));
        d = vaddq_s32(d, vmovltq_s16(odd));
        w += 16;
    }
    const int32_t *multipliers = (const int32_t *)(const void *)w;
    a = mcud_vector_results(a, multipliers, finish);
    b = mcud_vector_results(b, multipliers + 4, finish);
    c = mcud_vector_results(c, multipliers + 8, finish);
    d = mcud_vector_results(d, multipliers + 12, finish);
    const int16x8_t even = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), a), b);
    const int16x8_t odd = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), c), d);
    vst1q_p_s8(y, vqmovntq_s16(vqmovnbq_s16(vdupq_n_s8(0), even), odd), some);
    return multipliers + 16;
}

#endif
