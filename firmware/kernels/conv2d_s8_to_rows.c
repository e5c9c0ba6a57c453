#include "conv2d_s8_to_rows.h"

#include "mcud_dot_s8.h"

void mcud_conv2d_s8_to_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_to_rows_params *params = op->params;
    const int32_t first = first_row * params->row_channels;
    const mcud_channels_s8 to = {
        .weights = params->weights + first * params->input_channels,
        .bias = params->bias + first,
        .multipliers = params->multipliers + first,
        .channels = (end_row - first_row) * params->row_channels,
        .depth = params->input_channels,
        .shift = params->shift,
        .zero_point = params->output_zero_point,
        .low = params->low,
        .high = params->high,
    };
    mcud_pixel_s8(&to, mcud_row(op->in[0], 0), mcud_row(op->out, first_row));
}
