#include "conv2d_s8_asymmetric.h"

#include "mcud_clip_s8.h"
#include "mcud_dot_row_s8.h"
#include "mcud_finish_twice.h"
#include "mcud_window.h"

static int32_t sum_of(const int8_t *x, int32_t count)
{
    int32_t sum = 0;
    int32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        sum += x[i] + x[i + 1] + x[i + 2] + x[i + 3];
    }
    for (; i < count; i++) {
        sum += x[i];
    }
    return sum;
}

/* Computes channels [k, end) of a gathered window, by records of one channel; `total` is the sum of the window. Returns
 * the record after theirs. */
MCUD_NOINLINE const int32_t *multiply_ones(const mcud_conv2d_s8_asymmetric_params *params, const int32_t *record,
                                           int32_t k, int32_t end, const int8_t *patch, int32_t total, int8_t *y)
{
    const mcud_finish_s8 once = {params->quant.zero_point, params->quant.left_shift, 0};
    const mcud_twice_s8 twice = {params->quant.zero_point, params->act.min, params->act.max};
    for (; k < end; k++, y++) {
        int32_t sum = *record++;
        record = mcud_dot_one_s8(patch, 4 * params->patch_groups, record, &sum);
        sum += total * params->offsets[k];
        if (params->exponents == NULL) {
            *y = mcud_requantize_s8(sum, *record, &once);
        } else {
            mcud_finish_twice(&sum, record, params->exponents + k, 1, &twice, y);
        }
        record++;
    }
    return record;
}

/* Computes the channels of a group, from channel `first` on, of a gathered window. Returns the record after theirs. */
static const int32_t *multiply(const mcud_conv2d_s8_asymmetric_params *params, const int32_t *record, int32_t first,
                               const int8_t *patch, int8_t *y)
{
    const mcud_finish_s8 once = {params->quant.zero_point, params->quant.left_shift, 0};
    const mcud_twice_s8 twice = {params->quant.zero_point, params->act.min, params->act.max};
    const int32_t total = sum_of(patch, params->window_values);
    const int32_t end = first + params->group_outputs;
    int32_t k = first;
    for (; k + 4 <= end; k += 4, y += 4) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        record = mcud_dot_row_s8(patch, 4 * params->patch_groups, record + 4, sums);
        for (int32_t i = 0; i < 4; i++) {
            sums[i] += total * params->offsets[k + i];
        }
        if (params->exponents == NULL) {
            mcud_finish_row_s8(sums, record, &once, y);
        } else {
            mcud_finish_twice(sums, record, params->exponents + k, 4, &twice, y);
        }
        record += 4;
    }
    return k < end ? multiply_ones(params, record, k, end, patch, total, y) : record;
}

void mcud_conv2d_s8_asymmetric(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_asymmetric_params *params = op->params;
    uint32_t *rows = mcud_row(op->scratch, first_row);
    int8_t *const patch = (int8_t *)(rows + params->window.kernel_rows);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    mcud_patch_source window = {
        .offsets = rows,
        .kernel_rows = params->window.kernel_rows,
        .kernel_cols = params->window.kernel_cols,
        .tap_bytes = params->group_inputs,
        .tap_pitch = params->window.dilation_cols * params->dims.input_channels,
        .fill = params->input_zero_point,
    };
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        window.rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, window.rows, rows);
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            const int32_t first_col = left + cols.first * params->window.dilation_cols;
            const int32_t *record = params->packed_weights;
            window.memory = op->in[0]->memory;
            for (int32_t first = 0; first < params->dims.output_channels; first += params->group_outputs) {
                mcud_gather_window(&window, cols, first_col * params->dims.input_channels, (uint8_t *)patch);
                record = multiply(params, record, first, patch, y);
                window.memory += params->group_inputs;
                y += params->group_outputs;
            }
        }
    }
    if (params->exponents == NULL) {
        mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
    }
}
