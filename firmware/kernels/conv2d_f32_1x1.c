#include "conv2d_f32_1x1.h"

#include <stddef.h>

#include "mcud_dot_f32.h"

void mcud_conv2d_f32_1x1(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_1x1_params *params = op->params;
    const mcud_channels_f32 to = {
        .weights = params->weights,
        .bias = params->bias,
        .channels = params->output_channels,
        .depth = params->input_channels,
        .low = params->low,
        .high = params->high,
    };
    const int32_t step = params->stride_cols * params->input_channels;
    float *out = mcud_row(op->out, first_row);
    const float *waiting = NULL; /* a pixel that has no partner yet */
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row * params->stride_rows);
        for (int32_t col = 0; col < params->output_cols; col++) {
            const float *pixel = in + col * step;
            if (waiting == NULL) {
                waiting = pixel;
                continue;
            }
            mcud_pixels_f32(&to, waiting, pixel, out, out + params->output_channels);
            out += 2 * params->output_channels;
            waiting = NULL;
        }
    }
    if (waiting != NULL) {
        mcud_pixel_f32(&to, waiting, out);
    }
}
