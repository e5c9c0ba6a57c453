#include "add_s8_tflite.h"

#include <stdbool.h>

#include "mcud_clip_s8.h"
#include "mcud_operand.h"
#include "mcud_simd.h"

enum { FRACTION = 20, MOST_SHIFT = 4, MOST_SUM_SHIFT = 22 };

/* A sum of two operands, one of which has the larger scale: its share is exact, and is half of its value. The other one
 * is scaled and rounded as the sum is. Multipliers are less 2^32. */
typedef struct {
    int32_t factor; /* of the other operand, and what is added */
    int32_t constant;
    int32_t multiplier;
    int32_t half; /* and the zero point of the exact operand */
    int32_t shift;
    int32_t sum_multiplier;
    int32_t sum_half; /* and that of the output */
    int32_t sum_shift; /* 0 if it is another sum */
} exact_and_other;

/* The arithmetic of the other operand with this zero point, multiplier and exponent. */
static exact_and_other arithmetic_of(const mcud_add_s8_tflite_params *p, int32_t exact_zero_point, int32_t zero_point,
                                     int32_t multiplier, int32_t exponent)
{
    exact_and_other by = {0};
    const int32_t alike = exponent == 0; /* half of both values is exact */
    const int32_t shift = alike ? 1 : -exponent;
    if (multiplier == 0 || shift > MOST_SHIFT || p->b_sign < 0 || p->quant.multiplier == 0 || p->quant.shift >= 0 ||
        p->quant.shift < -MOST_SUM_SHIFT) {
        return by;
    }
    by.factor = (int32_t)1 << (FRACTION + alike);
    by.constant = -zero_point * by.factor;
    by.multiplier = (int32_t)((uint32_t)multiplier << 1);
    by.shift = shift;
    by.half = ((int32_t)1 << (shift - 1)) - exact_zero_point * ((int32_t)1 << (FRACTION - 1 + shift));
    by.sum_multiplier = (int32_t)((uint32_t)p->quant.multiplier << 1);
    by.sum_shift = -p->quant.shift;
    by.sum_half = (2 * p->quant.zero_point + 1) * ((int32_t)1 << (by.sum_shift - 1));
    return by;
}

static inline int32_t rounded(int32_t value, int32_t multiplier, int32_t half, int32_t shift)
{
    const int32_t once = mcud_scale_once(value, multiplier);
    return (once + (once >> 31) + half) >> shift;
}

static void add_exact(const exact_and_other *how, const int8_t *exact, const int8_t *other, int8_t *out, int32_t count)
{
    const exact_and_other by = *how; /* a store to out may not change it */
    for (const int8_t *const end = out + count; out < end; out++) {
        const int32_t scaled = rounded(*other++ * by.factor + by.constant, by.multiplier, by.half, by.shift);
        const int32_t sum = *exact++ * ((int32_t)1 << (FRACTION - 1)) + scaled;
        *out = mcud_saturate_s8(rounded(sum, by.sum_multiplier, by.sum_half, by.sum_shift));
    }
}

static void add(const mcud_add_s8_tflite_params *params, const int8_t *a, const int8_t *b, int8_t *out)
{
    /* A copy, since the compiler must expect a store to out to change *params. */
    const mcud_add_s8_tflite_params p = *params;
    for (const int8_t *end = out + p.broadcast.channels; out < end; out++) {
        const int32_t x = (*a - p.a_zero_point) * ((int32_t)1 << FRACTION);
        const int32_t y = (*b - p.b_zero_point) * ((int32_t)1 << FRACTION);
        const int32_t sum = mcud_scale_twice(x, p.a_multiplier, p.a_exponent) +
                            p.b_sign * mcud_scale_twice(y, p.b_multiplier, p.b_exponent);
        const int32_t scaled = mcud_scale_twice(sum, p.quant.multiplier, p.quant.shift);
        *out = (int8_t)mcud_clamp(p.quant.zero_point + scaled, p.act.min, p.act.max);
        a += p.broadcast.a_channel_step;
        b += p.broadcast.b_channel_step;
    }
}

void mcud_add_s8_tflite(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_add_s8_tflite_params *params = op->params;
    const mcud_broadcast *steps = &params->broadcast;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    const bool a_is_exact = params->a_exponent == 0;
    const exact_and_other by =
        a_is_exact ? arithmetic_of(params, params->a_zero_point, params->b_zero_point, params->b_multiplier,
                                   params->b_exponent)
                   : arithmetic_of(params, params->b_zero_point, params->a_zero_point, params->a_multiplier,
                                   params->a_exponent);
    const bool is_fast = by.sum_shift > 0 && steps->a_channel_step == 1 && steps->b_channel_step == 1;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_operand_s8(params->a, tensors.a, row, steps->a_row_step);
        const int8_t *b = mcud_operand_s8(params->b, tensors.b, row, steps->b_row_step);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < steps->cols; col++) {
            if (is_fast) {
                add_exact(&by, a_is_exact ? a : b, a_is_exact ? b : a, out, steps->channels);
                mcud_clip_s8(out, steps->channels, params->act.min, params->act.max);
            } else {
                add(params, a, b, out);
            }
            a += steps->a_col_step;
            b += steps->b_col_step;
            out += steps->channels;
        }
    }
}
