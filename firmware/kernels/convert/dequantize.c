#include "dequantize.h"

void mcud_dequantize(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dequantize_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = params->scale * (float)(in[i] - params->zero_point);
        }
    }
}
