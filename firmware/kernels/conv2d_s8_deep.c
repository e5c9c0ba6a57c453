#include "conv2d_s8_deep.h"

#include "mcud_clip_s8.h"
#include "mcud_simd.h"
#include "mcud_window.h"

/* patch[4 * groups] -> y[channels] */
static void multiply(const mcud_conv2d_s8_deep_params *params, const int8_t *patch, const int32_t *record, int8_t *y)
{
    const mcud_finish_s8 finish = {params->output_zero_point, params->left, 0};
    const int8_t *const ends[2] = {patch + 4 * (params->patch_groups & 3), patch + 4 * params->patch_groups};
    int8_t last[4]; /* results of a record that the output has no room for */
    for (int32_t left = params->group_outputs; left > 0; left -= 4, y += 4) {
        record = mcud_record_1x4(patch, ends, record, &finish, left < 4 ? last : y);
    }
    for (int32_t i = params->group_outputs & 3; i > 0; i--) {
        y[i - 5] = last[i - 1];
    }
}

void mcud_conv2d_s8_deep(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_deep_params *params = op->params;
    const int32_t pixel_bytes = params->input_channels;
    const int32_t group_words = (params->group_outputs + 3) / 4 * (8 + 4 * params->patch_groups);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *const patch = (int8_t *)(offsets + params->kernel_rows);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    mcud_window window = {
        .offsets = offsets,
        .kernel_rows = params->kernel_rows,
        .kernel_cols = params->kernel_cols,
        .tap_bytes = params->group_inputs,
        .tap_pitch = params->dilation_cols * params->input_channels,
        .fill = params->input_zero_point,
    };
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->stride_rows - params->pad_top;
        window.rows = mcud_taps_inside(top, params->dilation_rows, params->kernel_rows, 0, params->input_rows);
        mcud_window_rows(op->in[0], top, params->dilation_rows, window.rows, offsets);
        int32_t left = -params->pad_left;
        for (int32_t col = 0; col < params->output_cols; col++, left += params->stride_cols) {
            const mcud_taps cols =
                mcud_taps_inside(left, params->dilation_cols, params->kernel_cols, 0, params->input_cols);
            const int32_t first_col = left + cols.first * params->dilation_cols;
            window.memory = op->in[0]->memory;
            for (int32_t group = 0; group < params->groups; group++) {
                mcud_gather(&window, cols, first_col * pixel_bytes, (uint8_t *)patch);
                multiply(params, patch, params->records + group * group_words, y);
                window.memory += params->group_inputs;
                y += params->group_outputs;
            }
        }
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->low, params->high);
}
