#include "irfft_s32.h"

#include "mcud_fft_s32.h"

void mcud_irfft_s32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_irfft_s32_params *params = op->params;
    const mcud_transform fft = MCUD_TRANSFORM(params, 1);
    for (int32_t row = first_row; row < end_row; row++) {
        mcud_fft_backward(mcud_row(op->in[0], row), mcud_row(op->out, row), &fft);
    }
}
