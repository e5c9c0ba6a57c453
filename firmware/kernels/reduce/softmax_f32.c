#include "softmax_f32.h"

#include "mcud_exponential_f32.h"

static void softmax(const mcud_softmax_f32_params *params, const float *in, float *out)
{
    const int32_t step = params->step;
    const int32_t extent = params->count * step;
    float max = in[0];
    for (int32_t i = step; i < extent; i += step) {
        max = in[i] > max ? in[i] : max;
    }
    float sum = 0.0f;
    for (int32_t i = 0; i < extent; i += step) {
        out[i] = mcud_expf(in[i] - max);
        sum += out[i];
    }
    for (int32_t i = 0; i < extent; i += step) {
        out[i] /= sum;
    }
}

void mcud_softmax_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_softmax_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t group = 0; group < params->groups; group++) {
            softmax(params, in, out);
            in += params->group_step;
            out += params->group_step;
        }
    }
}
