#include "conv2d_s8_1x1.h"

#include <stddef.h>

#include "mcud_dot_s8.h"

void mcud_conv2d_s8_1x1(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_params *params = op->params;
    const mcud_channels_s8 to = {
        .weights = params->weights,
        .bias = params->bias,
        .multipliers = params->multipliers,
        .channels = params->output_channels,
        .depth = params->input_channels,
        .shift = params->shift,
        .zero_point = params->output_zero_point,
        .low = params->low,
        .high = params->high,
    };
    const int32_t step = params->stride_cols * params->input_channels;
    int8_t *out = mcud_row(op->out, first_row);
    const int8_t *waiting = NULL; /* a pixel that has no partner yet */
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row * params->stride_rows);
        for (int32_t col = 0; col < params->output_cols; col++) {
            const int8_t *pixel = in + col * step;
            if (waiting == NULL) {
                waiting = pixel;
                continue;
            }
            mcud_pixels_s8(&to, waiting, pixel, out, out + params->output_channels);
            out += 2 * params->output_channels;
            waiting = NULL;
        }
    }
    if (waiting != NULL) {
        mcud_pixel_s8(&to, waiting, out);
    }
}
