#include "conv2d_s8_1x1_wide.h"

#include "mcud_dot_s8.h"
#include "mcud_wide_s8.h"

void mcud_conv2d_s8_1x1_wide(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_wide_params *params = op->params;
    const int32_t channels = params->dims.output_channels;
    const mcud_wide_s8 by = {
        .zero_point = params->quant.zero_point,
        .pitch = channels,
        .channels = channels,
        .pairs = params->pairs,
        .step = 4 * params->pairs,
        .records = params->packed_weights,
    };
    int16_t *const x = mcud_row(op->scratch, first_row);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    const int8_t *pixel = mcud_row(op->in[0], first_row * params->stride_rows);
    int32_t row = first_row;
    int32_t cols_left = params->dims.output_cols; /* in this row, `pixel` included */
    for (int32_t left = (end_row - first_row) * params->dims.output_cols; left > 0;) {
        const int32_t block = mcud_wide_next(left, params->most_pixels);
        const int8_t *pixels[4];
        int32_t p = 0;
        for (; cols_left > block && p < block; p++) { /* while the row does not end */
            pixels[p] = pixel;
            pixel += params->pixel_step;
        }
        cols_left -= p;
        for (; p < block; p++) {
            pixels[p] = pixel;
            pixel += params->pixel_step;
            cols_left--;
            if (cols_left == 0 && ++row < end_row) {
                pixel = mcud_row(op->in[0], row * params->stride_rows);
                cols_left = params->dims.output_cols;
            }
        }
        if (block == 4) {
            mcud_wide_expand(x, pixels, params->dims.input_channels);
        }
        for (p = 0; block < 4 && p < block; p++) {
            mcud_expand(x + 2 * p * params->pairs, pixels[p], params->dims.input_channels, 1);
        }
        mcud_wide_multiply(&by, x, block, y);
        y += block * channels;
        left -= block;
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
