#include "conv2d_s8_deep.h"

#include "mcud_clip_s8.h"
#include "mcud_dot_row_s8.h"
#include "mcud_window.h"

void mcud_conv2d_s8_deep(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_deep_params *params = op->params;
    const int32_t pixel_bytes = params->dims.input_channels;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    const int32_t patch_values = 4 * params->patch_groups;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *const patch = (int8_t *)(offsets + params->window.kernel_rows);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    mcud_patch_source window = {
        .offsets = offsets,
        .kernel_rows = params->window.kernel_rows,
        .kernel_cols = params->window.kernel_cols,
        .tap_bytes = params->group_inputs,
        .tap_pitch = params->window.dilation_cols * params->dims.input_channels,
        .fill = params->input_zero_point,
    };
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        window.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, window.rows, offsets);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            const int32_t first_col = left + cols.first * params->window.dilation_cols;
            const int32_t *record = params->packed_weights;
            window.memory = op->in[0]->memory;
            for (int32_t group = 0; group < params->groups; group++) {
                mcud_gather_window(&window, cols, first_col * pixel_bytes, (uint8_t *)patch);
                record = mcud_pixel_s8(&finish, record, params->group_outputs, patch, patch_values, y);
                window.memory += params->group_inputs;
                y += params->group_outputs;
            }
        }
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
