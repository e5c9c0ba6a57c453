#include "conv2d_f32_to_rows.h"

#include "mcud_pixel_f32.h"

void mcud_conv2d_f32_to_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_to_rows_params *params = op->params;
    const int32_t padded_channels = (params->row_channels + 3) / 4 * 4;
    const float *x = mcud_row(op->in[0], 0);
    float *out = mcud_row(op->out, first_row);
    for (int32_t row = first_row; row < end_row; row++, out += params->row_channels) {
        const mcud_channels_f32 to = {
            .weights = params->weights + row * padded_channels * params->input_channels,
            .bias = params->bias + row * padded_channels,
            .channels = params->row_channels,
            .depth = params->input_channels,
            .act = {params->act.min, params->act.max},
        };
        mcud_pixel_f32(&to, x, out);
    }
}
