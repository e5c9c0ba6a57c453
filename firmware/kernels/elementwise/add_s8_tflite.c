#include "add_s8_tflite.h"

#include <stdbool.h>

#include "mcud_clip_s8.h"
#include "mcud_operand.h"
#include "mcud_sum_tflite.h"

/* The arithmetic for an exact operand and another one. */
static mcud_exact_sum arithmetic_of(const mcud_add_s8_tflite_params *p)
{
    const int32_t a_is_exact = p->exact == 1;
    const int32_t exact_zero_point = a_is_exact ? p->a_zero_point : p->b_zero_point;
    const int32_t zero_point = a_is_exact ? p->b_zero_point : p->a_zero_point;
    const int32_t exponent = a_is_exact ? p->b_exponent : p->a_exponent;
    const int32_t alike = exponent == 0; /* halves of both operands are exact */
    mcud_exact_sum by;
    by.fraction = MCUD_SUM_FRACTION + alike;
    by.constant = -zero_point * ((int32_t)1 << by.fraction);
    by.multiplier = a_is_exact ? p->b_multiplier : p->a_multiplier;
    by.shift = alike ? 1 : -exponent;
    by.half = ((int32_t)1 << (by.shift - 1)) - exact_zero_point * ((int32_t)1 << (MCUD_SUM_FRACTION - 1 + by.shift));
    by.sum_multiplier = p->quant.multiplier;
    by.sum_shift = -p->quant.shift;
    by.sum_half = (2 * p->quant.zero_point + 1) * ((int32_t)1 << (by.sum_shift - 1));
    return by;
}

static void add(const mcud_add_s8_tflite_params *params, const int8_t *a, const int8_t *b, int8_t *out)
{
    /* A copy, since the compiler must expect a store to out to change *params. */
    const mcud_add_s8_tflite_params p = *params;
    for (const int8_t *end = out + p.broadcast.channels; out < end; out++) {
        const int32_t x = (*a - p.a_zero_point) * ((int32_t)1 << MCUD_SUM_FRACTION);
        const int32_t y = (*b - p.b_zero_point) * ((int32_t)1 << MCUD_SUM_FRACTION);
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
    const bool a_is_exact = params->exact == 1;
    const mcud_exact_sum by = params->exact ? arithmetic_of(params) : (mcud_exact_sum){0};
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_operand_s8(params->a, tensors.a, row, steps->a_row_step);
        const int8_t *b = mcud_operand_s8(params->b, tensors.b, row, steps->b_row_step);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < steps->cols; col++) {
            if (params->exact) {
                mcud_add_exact(&by, a_is_exact ? a : b, a_is_exact ? b : a, out, steps->channels);
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
