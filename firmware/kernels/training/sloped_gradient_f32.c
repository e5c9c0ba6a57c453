#include "sloped_gradient_f32.h"

void mcud_sloped_gradient_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_sloped_gradient_f32_params *params = op->params;
    /* Copies, since the compiler must expect a store to out to change *params. */
    const float *const slopes = params->slopes;
    const int32_t cols = params->cols;
    const int32_t channels = params->channels;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *gradient = mcud_row(op->in[0], row);
        const uint8_t *mask = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        int32_t i = 0;
        for (int32_t col = 0; col < cols; col++) {
            for (int32_t c = 0; c < channels; c++, i++) {
                const uint32_t bit = (uint32_t)mask[i / 8] >> (i % 8) & 1u;
                out[i] = bit != 0 ? gradient[i] : slopes[c] * gradient[i];
            }
        }
    }
}
