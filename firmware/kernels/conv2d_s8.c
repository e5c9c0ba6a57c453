#include "conv2d_s8.h"

#include "mcud_dot_s8.h"
#include "mcud_window.h"

/* All pixels of one group; `out` is the group's first channel of the first one. */
static void convolve(const mcud_op *op, const mcud_channels_s8 *to, mcud_window *window, int32_t first_row,
                     int32_t end_row, int8_t *out)
{
    const mcud_conv2d_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *const first_patch = (int8_t *)(void *)(offsets + params->kernel_rows);
    int8_t *const second_patch = first_patch + params->patch_values;
    const int32_t pixel_bytes = params->input_channels;
    int8_t *patch = first_patch;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->stride_rows - params->pad_top;
        window->rows =
            mcud_taps_inside(top, params->dilation_rows, params->kernel_rows, 0, params->input_rows);
        mcud_window_rows(op->in[0], top, params->dilation_rows, window->rows, offsets);
        int32_t left = -params->pad_left;
        for (int32_t col = 0; col < params->output_cols; col++, left += params->stride_cols) {
            const mcud_taps cols =
                mcud_taps_inside(left, params->dilation_cols, params->kernel_cols, 0, params->input_cols);
            const int32_t first_col = left + cols.first * params->dilation_cols;
            mcud_gather(window, cols, first_col * pixel_bytes, (uint8_t *)patch);
            if (patch == first_patch) {
                patch = second_patch;
                continue;
            }
            mcud_pixels_s8(to, first_patch, second_patch, out, out + params->output_channels);
            out += 2 * params->output_channels;
            patch = first_patch;
        }
    }
    if (patch == second_patch) {
        mcud_pixel_s8(to, first_patch, out);
    }
}

void mcud_conv2d_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_params *params = op->params;
    const int32_t group_bytes = params->group_inputs;
    int8_t *out = mcud_row(op->out, first_row);
    mcud_channels_s8 to = {
        .weights = params->weights,
        .bias = params->bias,
        .multipliers = params->multipliers,
        .channels = params->group_outputs,
        .depth = params->patch_values,
        .shift = params->shift,
        .zero_point = params->output_zero_point,
        .low = params->low,
        .high = params->high,
    };
    mcud_window window = {
        .memory = op->in[0]->memory,
        .offsets = mcud_row(op->scratch, first_row),
        .kernel_rows = params->kernel_rows,
        .kernel_cols = params->kernel_cols,
        .tap_bytes = group_bytes,
        .tap_pitch = params->dilation_cols * params->input_channels,
        .fill = params->input_zero_point,
    };
    for (int32_t group = 0; group < params->groups; group++) {
        convolve(op, &to, &window, first_row, end_row, out);
        to.weights += params->group_outputs * params->patch_values;
        to.bias += params->group_outputs;
        to.multipliers += params->group_outputs;
        window.memory += group_bytes;
        out += params->group_outputs;
    }
}
