#include "conv2d_f32_gathered.h"

#include "mcud_pixel_f32.h"
#include "mcud_window.h"

/* Multiplies `count` gathered windows, at most four. */
static void multiply(const mcud_channels_f32 *to, const float *patches, int32_t count, int32_t pitch, float *y)
{
    if (count == 4) {
        mcud_pixels_f32(to, patches, to->depth, y, pitch);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        mcud_pixel_f32(to, patches + i * to->depth, y + i * pitch);
    }
}

/* All pixels of one group; `out` is the group's first channel of the first one. */
static void convolve(const mcud_op *op, const mcud_channels_f32 *to, mcud_patch_source *window, int32_t first_row,
                     int32_t end_row, float *out)
{
    const mcud_conv2d_f32_gathered_params *params = op->params;
    const int32_t pixel_bytes = params->dims.input_channels * (int32_t)sizeof(float);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *const patches = (float *)(void *)(offsets + params->window.kernel_rows);
    int32_t gathered = 0;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        window->rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, window->rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            const int32_t first_col = left + cols.first * params->window.dilation_cols;
            mcud_gather_window(window, cols, first_col * pixel_bytes, (uint8_t *)(patches + gathered * to->depth));
            if (++gathered == 4) {
                multiply(to, patches, 4, params->dims.output_channels, out);
                out += 4 * params->dims.output_channels;
                gathered = 0;
            }
        }
    }
    multiply(to, patches, gathered, params->dims.output_channels, out);
}

void mcud_conv2d_f32_gathered(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_gathered_params *params = op->params;
    const int32_t group_bytes = params->group_inputs * (int32_t)sizeof(float);
    const int32_t padded_outputs = (params->group_outputs + 3) / 4 * 4;
    float *out = mcud_row(op->out, first_row);
    mcud_channels_f32 to = {
        .weights = params->weights,
        .bias = params->bias,
        .channels = params->group_outputs,
        .depth = params->patch_values,
        .act = {params->act.min, params->act.max},
    };
    mcud_patch_source window = {
        .memory = op->in[0]->memory,
        .offsets = mcud_row(op->scratch, first_row),
        .kernel_rows = params->window.kernel_rows,
        .kernel_cols = params->window.kernel_cols,
        .tap_bytes = group_bytes,
        .tap_pitch = params->window.dilation_cols * params->dims.input_channels * (int32_t)sizeof(float),
        .fill = 0,
    };
    for (int32_t group = 0; group < params->groups; group++) {
        convolve(op, &to, &window, first_row, end_row, out);
        to.weights += padded_outputs * params->patch_values;
        to.bias += padded_outputs;
        window.memory += group_bytes;
        out += params->group_outputs;
    }
}
