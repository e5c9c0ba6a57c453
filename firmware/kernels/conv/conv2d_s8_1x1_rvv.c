#include "conv2d_s8_1x1_rvv.h"

#include "mcud_clip_s8.h"
#include "mcud_lanes_s8.h"

void mcud_conv2d_s8_1x1_rvv(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_rvv_params *params = op->params;
    const mcud_vector_channels to = {
        .records = params->packed_weights,
        .channels = params->dims.output_channels,
        .pitch = params->dims.output_channels,
        .depth = params->dims.input_channels,
        .finish = {params->quant.zero_point, params->quant.left_shift, 0},
    };
    const int32_t cols = params->dims.output_cols;
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    int32_t row = first_row;
    int32_t row_left = cols; /* pixels of this row that are not yet taken */
    const int8_t *pixel = mcud_row(op->in[0], row * params->stride_rows);
    for (int32_t left = (end_row - first_row) * cols; left > 0;) {
        const int32_t count = mcud_vector_next_pixels(left, 3);
        const int8_t *x[3];
        for (int32_t p = 0; p < count; p++) {
            if (row_left == 0) {
                row++;
                row_left = cols;
                pixel = mcud_row(op->in[0], row * params->stride_rows);
            }
            x[p] = pixel;
            pixel += params->pixel_step;
            row_left--;
        }
        mcud_lanes_pixels(&to, x, count, y);
        y += count * to.channels;
        left -= count;
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
