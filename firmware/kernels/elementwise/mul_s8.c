#include "mul_s8.h"

#include "mcud_bytes.h"
#include "mcud_clip_s8.h"
#include "mcud_operand.h"
#include "mcud_quant.h"

/* For any operands and any scale. */
static void multiply(const mcud_mul_s8_params *params, const int8_t *a, const int8_t *b, int8_t *out)
{
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t a_step = params->broadcast.a_channel_step;
    const int32_t b_step = params->broadcast.b_channel_step;
    const int32_t a_zero_point = params->a_zero_point;
    const int32_t b_zero_point = params->b_zero_point;
    const int32_t multiplier = params->quant.multiplier;
    const int32_t shift = params->quant.shift;
    const int32_t twice = params->twice;
    const int32_t zero_point = params->quant.zero_point;
    const int32_t low = params->act.min;
    const int32_t high = params->act.max;
    for (const int8_t *end = out + params->broadcast.channels; out < end; out++) {
        const int32_t product = (*a - a_zero_point) * (*b - b_zero_point);
        const int32_t scaled =
            twice ? mcud_scale_twice(product, multiplier, shift) : mcud_scale(product, multiplier, shift);
        *out = (int8_t)mcud_clamp(zero_point + scaled, low, high);
        a += a_step;
        b += b_step;
    }
}

void mcud_mul_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_mul_s8_params *params = op->params;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    const mcud_byte_product product = {params->a_zero_point, params->b_zero_point, 32 - params->quant.shift,
                                       params->quant.multiplier, params->quant.zero_point};
    const int32_t by_one = params->broadcast.a_channel_step * params->broadcast.b_channel_step == 1;
    const int32_t usual = by_one && !params->twice && product.left >= 0 && product.left <= 14;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_operand_s8(params->a, tensors.a, row, params->broadcast.a_row_step);
        const int8_t *b = mcud_operand_s8(params->b, tensors.b, row, params->broadcast.b_row_step);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->broadcast.cols; col++) {
            if (usual) {
                mcud_multiply_bytes(a, b, out, params->broadcast.channels, &product);
                mcud_clip_s8(out, params->broadcast.channels, params->act.min, params->act.max);
            } else {
                multiply(params, a, b, out);
            }
            a += params->broadcast.a_col_step;
            b += params->broadcast.b_col_step;
            out += params->broadcast.channels;
        }
    }
}
