#include "conv2d_s8_full_rvv.h"

#include "conv2d_s8_rows_rvv.h"

void mcud_conv2d_s8_full_rvv(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_s8_full_rvv_params *params = op->params;
    const mcud_vector_channels to = {
        .records = params->packed_weights,
        .channels = params->output_channels,
        .finish = {params->quant.zero_point, params->quant.left_shift, 0},
    };
    int8_t *const out = mcud_row(op->out, first_row);
    add_rows(op, &to, 0, params->input_rows, params->row_values);
    mcud_lanes_finish(&to, mcud_row(op->scratch, first_row), out);
    mcud_clip_s8(out, params->output_channels, params->act.min, params->act.max);
}
