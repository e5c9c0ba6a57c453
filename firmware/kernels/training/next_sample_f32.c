#include "next_sample_f32.h"

void mcud_next_sample_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_next_sample_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *optimizer = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        const float samples = optimizer[1] + 1.0f;
        out[0] = optimizer[0];
        out[1] = samples < params->batch ? samples : 0.0f;
    }
}
