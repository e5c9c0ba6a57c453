/* mcud_lstm_s16.h by intrinsics of the M-profile Vector Extension. A doubling, rounded high half is mcud_product_s16 of
 * 16 bits, and the first rounding of mcud_scale_twice. */
#ifndef MCUD_LSTM_S16_MVE_H
#define MCUD_LSTM_S16_MVE_H

#include <arm_mve.h>

/* As mcud_scale_twice, in each lane. */
static inline int32x4_t mcud_scale_twice_mve(int32x4_t sums, int32_t multiplier, int32_t exponent)
{
    if (exponent >= 0) {
        return vqrdmulhq_n_s32(vshlq_r_s32(sums, exponent), multiplier);
    }
    const int32x4_t once = vqrdmulhq_n_s32(sums, multiplier);
    return vrshlq_n_s32(vaddq_s32(once, vshrq_n_s32(once, 31)), exponent);
}

/* As mcud_divide_s16, in each lane of 32 bits. */
static inline int32x4_t mcud_divide_mve(int32x4_t value, int32_t bits)
{
    return vrshlq_n_s32(vaddq_s32(value, vshrq_n_s32(value, 31)), -bits);
}

/* As mcud_exp_s16, in each lane; `bits` is 1..7. */
static inline int16x8_t mcud_exp_mve(int16x8_t value, int32_t bits)
{
    static const int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
    const int16_t quarter = (int16_t)(1 << (13 - bits));
    const int16x8_t below = vsubq_n_s16(vandq_s16(value, vdupq_n_s16((int16_t)(quarter - 1))), quarter);
    const int16x8_t x = vaddq_n_s16(vshlq_r_s16(below, bits), 1 << 12);
    const int16x8_t x2 = vqrdmulhq_s16(x, x);
    const int16x8_t x3 = vqrdmulhq_s16(x2, x);
    const int16x8_t x4 = vqrdmulhq_s16(x2, x2); /* not negative */
    const int16x8_t thirds = vqrdmulhq_n_s16(vaddq_s16(vrshrq_n_s16(x4, 2), x3), 10923);
    const int16x8_t two = vaddq_s16(thirds, x2);
    const int16x8_t half = vrshrq_n_s16(vaddq_s16(two, vshrq_n_s16(two, 15)), 1);
    int16x8_t result = vaddq_n_s16(vqrdmulhq_n_s16(vaddq_s16(x, half), 28918), 28918);
    const int16x8_t quarters = vshlq_r_s16(vsubq_s16(below, value), bits - 13);
    for (int32_t i = 0; i < bits + 2 && i < 7; i++) {
        const int16x8_t bit = vandq_s16(quarters, vdupq_n_s16((int16_t)(1 << i)));
        result = vqrdmulhq_m_n_s16(result, result, factors[i], vcmpneq_n_s16(bit, 0));
    }
    if (bits > 5) { /* below -32 */
        result = vpselq_s16(vdupq_n_s16(0), result, vcmpltq_n_s16(value, (int16_t)-(1 << (20 - bits))));
    }
    return vpselq_s16(vdupq_n_s16(INT16_MAX), result, vcmpeqq_n_s16(value, 0));
}

/* As mcud_twice_reciprocal_s16, in each lane. */
static inline int16x8_t mcud_twice_reciprocal_mve(int16x8_t value)
{
    const int16x8_t half = vaddq_n_s16(vshrq_n_s16(value, 1), 1 << 14);
    int16x8_t x = vaddq_n_s16(vqrdmulhq_n_s16(half, -15420), 23130);
    for (int32_t i = 0; i < 3; i++) {
        const int16x8_t error = vsubq_s16(vdupq_n_s16(1 << 13), vqrdmulhq_s16(half, x));
        x = vaddq_s16(x, vshlq_n_s16(vqrdmulhq_s16(x, error), 2));
    }
    return x;
}

/* As mcud_logistic_s16, in each lane. */
MCUD_NOINLINE int16x8_t mcud_logistic_mve(int16x8_t value)
{
    const int16x8_t x = mcud_twice_reciprocal_mve(mcud_exp_mve(vminq_s16(value, vnegq_s16(value)), 3));
    const int16x8_t result = vqaddq_s16(x, x);
    const int16x8_t other = vsubq_s16(vdupq_n_s16(INT16_MAX), result);
    const int16x8_t either = vpselq_s16(other, result, vcmpltq_n_s16(value, 0));
    return vpselq_s16(vdupq_n_s16(1 << 14), either, vcmpeqq_n_s16(value, 0));
}

/* As mcud_tanh_s16, in each lane. */
MCUD_NOINLINE int16x8_t mcud_tanh_mve(int16x8_t value, int32_t bits)
{
    const int16x8_t minus = vminq_s16(value, vnegq_s16(value));
    const int16x8_t x = vsubq_n_s16(mcud_twice_reciprocal_mve(mcud_exp_mve(minus, bits + 1)), 1 << 13);
    const int16x8_t result = vqshlq_n_s16(x, 2);
    const int16x8_t either = vpselq_s16(vnegq_s16(result), result, vcmpltq_n_s16(value, 0));
    return vpselq_s16(vdupq_n_s16(0), either, vcmpeqq_n_s16(value, 0));
}

/* The sums of four cells and x[depth]; weights are [groups of 4 values][4 cells][4]. */
static inline int32x4_t mcud_gate_sums_mve(const int32_t *w, const int8_t *x, int32_t depth, int32x4_t bias)
{
    const uint32x4_t groups = vidupq_n_u32(0, 1);
    const uint32x4_t places = vshlq_n_u32(groups, 4); /* a cell's weights for 16 values */
    int32_t a = 0;
    int32_t b = 0;
    int32_t c = 0;
    int32_t d = 0;
    for (; depth > 0; depth -= 16, x += 16, w += 16) {
        const mve_pred16_t some = vctp32q((uint32_t)(depth + 3) / 4);
        const int8x16_t values = vldrbq_z_s8(x, vctp8q((uint32_t)depth));
        a = vmladavaq_s8(a, values, vreinterpretq_s8_s32(vldrwq_gather_offset_z_s32(w, places, some)));
        b = vmladavaq_s8(b, values, vreinterpretq_s8_s32(vldrwq_gather_offset_z_s32(w + 1, places, some)));
        c = vmladavaq_s8(c, values, vreinterpretq_s8_s32(vldrwq_gather_offset_z_s32(w + 2, places, some)));
        d = vmladavaq_s8(d, values, vreinterpretq_s8_s32(vldrwq_gather_offset_z_s32(w + 3, places, some)));
    }
    int32x4_t sums = vdupq_n_s32(a);
    sums = vsetq_lane_s32(b, sums, 1);
    sums = vsetq_lane_s32(c, sums, 2);
    sums = vsetq_lane_s32(d, sums, 3);
    return vaddq_s32(sums, bias);
}

/* See mcud_lstm_s16_c.h. */
static inline void mcud_lstm_product(const mcud_lstm_weights *from, const int8_t *x, int32_t depth, int32_t cells,
                                     int16_t *gates)
{
    const int32_t *w = from->weights;
    const int32_t *bias = from->biases;
    const int32_t words = (depth + 3) / 4 * 4;
    for (int32_t gate = 0; gate < MCUD_GATES; gate++) {
        const int32_t multiplier = from->scales[2 * gate];
        const int32_t exponent = from->scales[2 * gate + 1];
        for (int32_t cell = 0; cell < cells; cell += 4, bias += 4, gates += 4, w += words) {
            const int32x4_t sums = mcud_gate_sums_mve(w, x, depth, vldrwq_s32(bias));
            const int32x4_t value = vaddq_s32(vldrhq_s32(gates), mcud_scale_twice_mve(sums, multiplier, exponent));
            vstrhq_s32(gates, vreinterpretq_s32_s16(vqmovnbq_s32(vdupq_n_s16(0), value)));
        }
    }
}

/* See mcud_lstm_s16_c.h. */
static inline void mcud_lstm_update(const mcud_lstm_cells *by, const int16_t *gates, int32_t cells, int8_t *h,
                                    int16_t *c)
{
    enum { NARROW = 15 };
    const mcud_lstm_cells p = *by;
    const int16_t clip = (int16_t)(p.cell_clip < INT16_MAX ? p.cell_clip : INT16_MAX);
    for (int32_t k = 0; k < p.hidden; k += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)(p.hidden - k));
        const int16x8_t input = mcud_logistic_mve(vldrhq_z_s16(gates + k, some));
        const int16x8_t forget = mcud_logistic_mve(vldrhq_z_s16(gates + cells + k, some));
        const int16x8_t candidate = mcud_tanh_mve(vldrhq_z_s16(gates + 2 * cells + k, some), 3);
        const int16x8_t output = mcud_logistic_mve(vldrhq_z_s16(gates + 3 * cells + k, some));
        const int16x8_t before = vldrhq_z_s16(c + k, some);
        const int32x4_t even = vaddq_s32(mcud_divide_mve(vmullbq_int_s16(forget, before), NARROW),
                                         mcud_divide_mve(vmullbq_int_s16(input, candidate), NARROW + p.cell_bits));
        const int32x4_t odd = vaddq_s32(mcud_divide_mve(vmulltq_int_s16(forget, before), NARROW),
                                        mcud_divide_mve(vmulltq_int_s16(input, candidate), NARROW + p.cell_bits));
        int16x8_t cell = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
        if (p.cell_clip <= INT16_MAX) {
            cell = vmaxq_s16(vminq_s16(cell, vdupq_n_s16(clip)), vdupq_n_s16((int16_t)-clip));
        }
        vstrhq_p_s16(c + k, cell, some);
        const int16x8_t shown = mcud_tanh_mve(cell, p.cell_bits);
        const int32x4_t low = mcud_scale_twice_mve(vmullbq_int_s16(output, shown), p.multiplier, p.exponent);
        const int32x4_t high = mcud_scale_twice_mve(vmulltq_int_s16(output, shown), p.multiplier, p.exponent);
        const int16x8_t both = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), low), high);
        const int16x8_t state = vqaddq_n_s16(both, (int16_t)p.zero_point);
        const int16x8_t least = vdupq_n_s16(INT8_MIN);
        vstrbq_p_s16(h + k, vmaxq_s16(vminq_s16(state, vdupq_n_s16(INT8_MAX)), least), some);
    }
}

#endif
