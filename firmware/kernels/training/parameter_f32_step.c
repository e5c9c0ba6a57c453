#include "parameter_f32_step.h"

#include "mcud_simd_f32.h"

void mcud_parameter_f32_step(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_parameter_f32_step_params *params = op->params;
    const float *optimizer = mcud_row(op->in[2], 0);
    const float rate = optimizer[1] + 1.0f < params->batch ? 0.0f : optimizer[0];
    const float decay = mcud_mac_f32(-rate, params->weight_decay, 1.0f);
    float step = -rate / params->batch;
    if (params->is_clipped) {
        const float *scale = mcud_row(op->in[3], 0);
        step *= *scale;
    }
    for (int32_t row = first_row; row < end_row; row++) {
        const float *parameter = mcud_row(op->in[0], row);
        const float *sum = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = mcud_mac_f32(step, sum[i], decay * parameter[i]);
        }
    }
}
