#include "rfft_s16.h"

#include "mcud_fft_s16.h"

void mcud_rfft_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_rfft_s16_params *params = op->params;
    const mcud_transform fft = MCUD_TRANSFORM(params, 0);
    for (int32_t row = first_row; row < end_row; row++) {
        mcud_fft_forward(mcud_row(op->in[0], row), params->count, mcud_row(op->out, row), &fft);
    }
}
