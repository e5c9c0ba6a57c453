#include "bias_f32_update.h"

#include "mcud_simd_f32.h"

void mcud_bias_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_bias_f32_update_params *params = op->params;
    const float *bias = mcud_row(op->in[0], first_row);
    float *out = mcud_row(op->out, first_row);
    for (int32_t c = 0; c < params->channels; c++) {
        float sum = 0.0f;
        for (int32_t row = 0; row < params->rows; row++) {
            const float *gradient = mcud_row(op->in[1], row);
            for (int32_t col = 0; col < params->cols; col++) {
                sum += gradient[col * params->channels + c];
            }
        }
        out[c] = mcud_fused_f32(params->step, sum, params->decay * bias[c]);
    }
}
