#include "quantize.h"

#include "mcud_quant_f32.h"

void mcud_quantize(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_quantize_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = (int8_t)mcud_quantized(in[i], params->scale, params->zero_point, -128, 127);
        }
    }
}
