#include "f32_to_s32.h"

static int32_t whole(float x)
{
    if (!(x >= -2147483648.0f)) {
        return x < 0.0f ? INT32_MIN : 0;
    }
    return x < 2147483648.0f ? (int32_t)x : INT32_MAX;
}

void mcud_f32_to_s32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_f32_to_s32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        int32_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = whole(in[i]);
        }
    }
}
