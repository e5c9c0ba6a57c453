#include "hard_sigmoid_f32.h"

void mcud_hard_sigmoid_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_hard_sigmoid_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            const float line = params->alpha * in[i] + params->beta;
            out[i] = line < 0.0f ? 0.0f : (line > 1.0f ? 1.0f : line);
        }
    }
}
