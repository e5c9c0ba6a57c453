#include "div_s8.h"

#include "mcud_operand.h"
#include "mcud_quant_f32.h"

static void divide(const mcud_div_s8_params *params, const int8_t *a, const int8_t *b, int8_t *out)
{
    for (int32_t i = 0; i < params->broadcast.channels; i++) {
        const float dividend = params->a_scale * (float)(*a - params->a_zero_point);
        const float divisor = params->b_scale * (float)(*b - params->b_zero_point);
        out[i] = (int8_t)mcud_quantized(dividend / divisor, params->output_scale, params->output_zero_point,
                                       params->act.min, params->act.max);
        a += params->broadcast.a_channel_step;
        b += params->broadcast.b_channel_step;
    }
}

void mcud_div_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_div_s8_params *params = op->params;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_operand_s8(params->a, tensors.a, row, params->broadcast.a_row_step);
        const int8_t *b = mcud_operand_s8(params->b, tensors.b, row, params->broadcast.b_row_step);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->broadcast.cols; col++) {
            divide(params, a, b, out);
            a += params->broadcast.a_col_step;
            b += params->broadcast.b_col_step;
            out += params->broadcast.channels;
        }
    }
}
