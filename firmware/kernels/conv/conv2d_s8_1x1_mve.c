#include "conv2d_s8_1x1_mve.h"

#include "mcud_clip_s8.h"
#include "mcud_pixels_s8.h"

void mcud_conv2d_s8_1x1_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_mve_params *params = op->params;
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
    for (int32_t row = first_row; row < end_row;) {
        const int8_t *const x = mcud_row(op->in[0], row * params->stride_rows);
        int32_t pixels = 0;
        do { /* also those of the rows that follow in memory */
            pixels += cols;
            row++;
        } while (row < end_row &&
                 mcud_row(op->in[0], row * params->stride_rows) == (const void *)(x + pixels * params->pixel_step));
        mcud_vector_pixels(&to, x, params->pixel_step, pixels, y);
        y += pixels * to.channels;
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
