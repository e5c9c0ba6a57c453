#include "layer_norm_f32.h"

#include <math.h>

static void normalize(const mcud_layer_norm_f32_params *params, const float *in, float *out)
{
    const int32_t count = params->count;
    const float *const scale = params->scale;
    const float *const bias = params->bias;
    float mean = 0.0f;
    if (params->centred) {
        for (int32_t i = 0; i < count; i++) {
            mean += in[i];
        }
        mean /= (float)count;
    }
    float variance = 0.0f;
    for (int32_t i = 0; i < count; i++) {
        const float x = in[i] - mean;
        variance += x * x;
    }
    const float factor = 1.0f / sqrtf(variance / (float)count + params->epsilon);
    for (int32_t i = 0; i < count; i++) {
        out[i] = (in[i] - mean) * factor * scale[i] + bias[i];
    }
}

void mcud_layer_norm_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_layer_norm_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t group = 0; group < params->groups; group++) {
            normalize(params, in, out);
            in += params->count;
            out += params->count;
        }
    }
}
