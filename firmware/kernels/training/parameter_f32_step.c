#include "parameter_f32_step.h"

#include "mcud_simd_f32.h"

void mcud_parameter_f32_step(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_parameter_f32_step_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *parameter = mcud_row(op->in[0], row);
        const float *direction = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = mcud_fused_f32(params->step, direction[i], params->decay * parameter[i]);
        }
    }
}
