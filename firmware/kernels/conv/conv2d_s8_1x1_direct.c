#include "conv2d_s8_1x1_direct.h"

#include "mcud_clip_s8.h"
#include "mcud_dot_row_s8.h"

void mcud_conv2d_s8_1x1_direct(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_direct_params *params = op->params;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t depth = params->dims.input_channels;
    const int32_t channels = params->dims.output_channels;
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *x = mcud_row(op->in[0], row * params->stride_rows);
        for (int32_t col = 0; col < params->dims.output_cols; col++) {
            mcud_pixel_s8(&finish, params->packed_weights, channels, x, depth, y);
            x += params->pixel_step;
            y += channels;
        }
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
