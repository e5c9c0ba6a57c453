#include "irfft_f32.h"

#include "mcud_fft_f32.h"

void mcud_irfft_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_irfft_f32_params *params = op->params;
    const transform made = {
        .twiddles = (const point *)params->twiddles,
        .unpack = (const point *)params->unpack,
        .radices = params->radices,
        .points = params->points,
        .stages = params->stages,
        .inverse = 1,
    };
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        backward(mcud_row(op->in[0], row), (point *)out, &made);
        for (int32_t i = 0; i < 2 * made.points; i++) {
            out[i] /= (float)(2 * made.points);
        }
    }
}
