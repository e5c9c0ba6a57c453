#include "conv2d_s8_biased.h"

#include "mcud_dot_row_s8.h"
#include "mcud_quant_f32.h"
#include "mcud_window.h"

/* Computes the outputs of a group from a gathered window x; returns the record after theirs. */
static const int32_t *one_group(const mcud_conv2d_s8_biased_params *params, const int32_t *record, const int8_t *x,
                                const float *bias, int8_t *y)
{
    const int32_t values = 4 * params->patch_groups;
    const float scale = params->scale;
    const int32_t zero_point = params->zero_point;
    const int32_t low = params->act.min;
    const int32_t high = params->act.max;
    for (int32_t k = 0, count = 4; k < params->group_outputs; k += count) {
        int32_t sums[4] = {record[0]};
        float units[4];
        if (params->group_outputs - k < 4) {
            count = 1;
            record = mcud_dot_one_s8(x, values, record + 1, sums);
        } else {
            memcpy(sums, record, sizeof sums);
            record = mcud_dot_row_s8(x, values, record + 4, sums);
        }
        memcpy(units, record, (size_t)count * sizeof *units);
        record += count;
        for (int32_t i = 0; i < count; i++) {
            const float value = (float)sums[i] * units[i] + bias[k + i];
            y[k + i] = (int8_t)mcud_quantized(value, scale, zero_point, low, high);
        }
    }
    return record;
}

void mcud_conv2d_s8_biased(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_biased_params *params = op->params;
    const int32_t pixel_bytes = params->dims.input_channels;
    const float *const bias = mcud_row(op->in[1], 0);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *const patch = (int8_t *)(offsets + params->window.kernel_rows);
    int8_t *y = mcud_row(op->out, first_row);
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
            const float *group_bias = bias;
            window.memory = op->in[0]->memory;
            for (int32_t group = 0; group < params->groups; group++) {
                mcud_gather_window(&window, cols, first_col * pixel_bytes, (uint8_t *)patch);
                record = one_group(params, record, patch, group_bias, y);
                window.memory += params->group_inputs;
                group_bias += params->group_outputs;
                y += params->group_outputs;
            }
        }
    }
}
