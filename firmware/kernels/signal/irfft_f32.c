#include "irfft_f32.h"

#include "mcud_fft_f32.h"

void mcud_irfft_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_irfft_f32_params *params = op->params;
    const mcud_transform fft = MCUD_TRANSFORM(params, 1);
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        mcud_fft_backward(mcud_row(op->in[0], row), (mcud_point *)out, &fft);
        for (int32_t i = 0; i < 2 * fft.points; i++) {
            out[i] /= (float)(2 * fft.points);
        }
    }
}
