#include "mul_s16.h"

#include "mcud_operand.h"
#include "mcud_quant.h"

static void multiply(const mcud_mul_s16_params *params, const int16_t *a, const int16_t *b, int16_t *out)
{
    /* A copy, since the compiler must expect a store to out to change *params. */
    const mcud_mul_s16_params p = *params;
    for (const int16_t *end = out + p.broadcast.channels; out < end; out++) {
        const int32_t scaled = mcud_scale_twice(*a * *b, p.multiplier, p.exponent);
        *out = (int16_t)mcud_clamp(scaled, p.act.min, p.act.max);
        a += p.broadcast.a_channel_step;
        b += p.broadcast.b_channel_step;
    }
}

void mcud_mul_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_mul_s16_params *params = op->params;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *a = mcud_operand_s16(params->a, tensors.a, row, params->broadcast.a_row_step);
        const int16_t *b = mcud_operand_s16(params->b, tensors.b, row, params->broadcast.b_row_step);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->broadcast.cols; col++) {
            multiply(params, a, b, out);
            a += params->broadcast.a_col_step;
            b += params->broadcast.b_col_step;
            out += params->broadcast.channels;
        }
    }
}
