#include "div_f32.h"

#include "mcud_operand.h"

static void divide(const mcud_div_f32_params *params, const float *a, const float *b, float *out)
{
    const int32_t a_step = params->a_channel_step;
    const int32_t b_step = params->b_channel_step;
    const float low = params->low;
    const float high = params->high;
    for (const float *end = out + params->channels; out < end; out++) {
        const float value = *a / *b;
        *out = value < low ? low : (value > high ? high : value);
        a += a_step;
        b += b_step;
    }
}

void mcud_div_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_div_f32_params *params = op->params;
    const mcud_tensor *a_tensor = op->in[0];
    const mcud_tensor *b_tensor = op->in[params->a == NULL && params->b == NULL ? 1 : 0];
    for (int32_t row = first_row; row < end_row; row++) {
        const float *a = mcud_operand_f32(params->a, a_tensor, row, params->a_row_step);
        const float *b = mcud_operand_f32(params->b, b_tensor, row, params->b_row_step);
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->cols; col++) {
            divide(params, a, b, out);
            a += params->a_col_step;
            b += params->b_col_step;
            out += params->channels;
        }
    }
}
