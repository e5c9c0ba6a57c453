#include "affine_s8.h"

#include "mcud_bytes.h"

void mcud_affine_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_affine_s8_params *params = op->params;
    const mcud_channel_scales by = {params->records, params->channels, params->act.min, params->act.max};
    for (int32_t row = first_row; row < end_row; row++) {
        mcud_scale_pixels(&by, mcud_row(op->in[0], row), mcud_row(op->out, row), params->cols);
    }
}
