#include "bias_f32_update.h"

#include "mcud_simd_f32.h"

/* The sums over all pixels of the gradient for four channels from c on. */
static void sum_4(const mcud_op *op, int32_t c, float sums[4])
{
    const mcud_bias_f32_update_params *params = op->params;
    float s0 = 0.0f;
    float s1 = 0.0f;
    float s2 = 0.0f;
    float s3 = 0.0f;
    for (int32_t row = 0; row < params->rows; row++) {
        const float *gradient = mcud_row(op->in[1], row);
        gradient += c;
        for (int32_t col = 0; col < params->cols; col++, gradient += params->channels) {
            s0 += gradient[0];
            s1 += gradient[1];
            s2 += gradient[2];
            s3 += gradient[3];
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* The sum for channel c. */
static float sum_1(const mcud_op *op, int32_t c)
{
    const mcud_bias_f32_update_params *params = op->params;
    float sum = 0.0f;
    for (int32_t row = 0; row < params->rows; row++) {
        const float *gradient = mcud_row(op->in[1], row);
        for (int32_t col = 0; col < params->cols; col++) {
            sum += gradient[col * params->channels + c];
        }
    }
    return sum;
}

void mcud_bias_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_bias_f32_update_params *params = op->params;
    const float *bias = mcud_row(op->in[0], first_row);
    float *out = mcud_row(op->out, first_row);
    int32_t c = 0;
    for (; c + 4 <= params->channels; c += 4) {
        float sums[4];
        sum_4(op, c, sums);
        for (int32_t i = 0; i < 4; i++) {
            out[c + i] = mcud_fused_f32(params->step, sums[i], params->decay * bias[c + i]);
        }
    }
    for (; c < params->channels; c++) {
        out[c] = mcud_fused_f32(params->step, sum_1(op, c), params->decay * bias[c]);
    }
}
