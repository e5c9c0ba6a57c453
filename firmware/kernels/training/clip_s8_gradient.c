#include "clip_s8_gradient.h"

void mcud_clip_s8_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_clip_s8_gradient_params *params = op->params;
    /* Copies, since the compiler must expect a store to out to change *params. */
    const int32_t first = params->first;
    const int32_t last = params->last;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *gradient = mcud_row(op->in[0], row);
        const int8_t *clipped = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->row_elements; i++) {
            out[i] = clipped[i] >= first && clipped[i] <= last ? gradient[i] : 0.0f;
        }
    }
}
