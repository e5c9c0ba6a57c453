#include "conv2d_s8_by_rows_rvv.h"

#include "conv2d_s8_rows_rvv.h"

void mcud_conv2d_s8_by_rows_rvv(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_by_rows_rvv_params *params = op->params;
    const mcud_vector_channels to = {
        .records = params->packed_weights,
        .channels = params->output_channels,
        .finish = {params->quant.zero_point, params->quant.left_shift, 0},
    };
    add_rows(op, &to, first_row, end_row, params->row_values);
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    int8_t *const out = mcud_row(op->out, 0);
    mcud_lanes_finish(&to, mcud_row(op->scratch, first_row), out);
    mcud_clip_s8(out, params->output_channels, params->act.min, params->act.max);
}
