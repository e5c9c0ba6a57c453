#include "tanh_f32.h"

#include <math.h>

void mcud_tanh_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_tanh_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = tanhf(in[i]);
        }
    }
}
