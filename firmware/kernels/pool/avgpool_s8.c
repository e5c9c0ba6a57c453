#include "avgpool_s8.h"

#include "mcud_bytes.h"
#include "mcud_window.h"

/* The means of pixels whose taps lie side by side. */
static void one_run(const mcud_byte_window *window, int32_t channels, const mcud_mean_quant *by, int8_t *out)
{
    for (int32_t c = 0; c < channels; c += MCUD_SUMS) {
        const int32_t left = channels - c;
        int32_t sums[MCUD_SUMS];
        mcud_sum_window(window, c, left, sums);
        mcud_means(sums, left < MCUD_SUMS ? left : MCUD_SUMS, by, out + c);
    }
}

void mcud_avgpool_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    mcud_byte_window window = {.pitch = params->window.dilation_cols * params->dims.channels};
    mcud_mean_quant mean = {.shift = params->shift, .zero_point = params->output_zero_point};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        const mcud_taps rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, rows, offsets);
        window.offsets = offsets + rows.first;
        window.rows = rows.end - rows.first;
        const mcud_taps counted_rows =
                mcud_taps_inside(top, params->window.dilation_rows, params->window.kernel_rows,
                                 params->counted_top, params->counted_bottom);
        const int32_t row_class = counted_rows.end - counted_rows.first - params->least_rows;
        const int32_t *multipliers = params->multipliers + row_class * params->factor_cols;
        int32_t left = -params->window.pad_left;
        for (int32_t col = 0, count; col < params->dims.output_cols;
             col += count, left += count * params->window.stride_cols) {
            count = mcud_joined_outputs(&params->window, left, params->dims.input_cols,
                                        params->dims.output_cols - col);
            const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            window.memory =
                op->in[0]->memory + (left + cols.first * params->window.dilation_cols) * params->dims.channels;
            window.cols = cols.end - cols.first;
            const mcud_taps counted =
                mcud_taps_inside(left, params->window.dilation_cols, params->window.kernel_cols,
                                 params->counted_left, params->counted_right);
            mean.taps = window.rows * window.cols;
            mean.offset = -mean.taps * params->input_zero_point;
            mean.multiplier = multipliers[counted.end - counted.first - params->least_cols];
            one_run(&window, count * params->dims.channels, &mean, out);
            out += count * params->dims.channels;
        }
    }
}
