#include "conv2d_f32_to_rows_s8w.h"

#include "mcud_dot_s8w.h"

void mcud_conv2d_f32_to_rows_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_to_rows_s8w_params *params = op->params;
    const int32_t padded_channels = (params->row_channels + 3) / 4 * 4;
    const float *x = mcud_row(op->in[0], 0);
    float *out = mcud_row(op->out, first_row);
    for (int32_t row = first_row; row < end_row; row++, out += params->row_channels) {
        const mcud_channels_s8w to = {
            .weights = params->weights + row * padded_channels * params->input_channels,
            .scale = params->scale + row * padded_channels,
            .bias = params->bias + row * padded_channels,
            .channels = params->row_channels,
            .depth = params->input_channels,
            .act = {params->act.min, params->act.max},
        };
        mcud_pixel_s8w(&to, x, out);
    }
}
