#include "masked_gradient_f32.h"

void mcud_masked_gradient_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_masked_gradient_f32_params *params = op->params;
    const int32_t count = params->row_elements; /* a copy, since a store to out might change it */
    for (int32_t row = first_row; row < end_row; row++) {
        const float *gradient = mcud_row(op->in[0], row);
        const uint8_t *mask = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < count; i++) {
            out[i] = ((uint32_t)mask[i / 8] >> (i % 8) & 1u) != 0 ? gradient[i] : 0.0f;
        }
    }
}
