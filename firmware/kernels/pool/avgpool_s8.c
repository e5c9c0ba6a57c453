#include "avgpool_s8.h"

#include "mcud_bytes.h"
#include "mcud_quant.h"
#include "mcud_window.h"

/* The means of one pixel. */
static void one_pixel(const mcud_avgpool_s8_params *params, const mcud_byte_window *window, int32_t multiplier,
                      int8_t *out)
{
    const int32_t offset = -window->rows * window->cols * params->input_zero_point;
    for (int32_t c = 0; c < params->dims.channels; c += 8) {
        int32_t sums[8];
        mcud_sum_window(window, c, params->dims.channels - c, sums);
        for (int32_t i = 0; i < 8 && c + i < params->dims.channels; i++) {
            const int32_t mean = mcud_scale_even(sums[i] + offset, multiplier, params->shift);
            out[c + i] = (int8_t)mcud_clamp(mean + params->output_zero_point, INT8_MIN, INT8_MAX);
        }
    }
}

void mcud_avgpool_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_s8_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *out = mcud_row(op->out, first_row);
    mcud_byte_window window = {.pitch = params->window.dilation_cols * params->dims.channels};
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
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            window.memory =
                op->in[0]->memory + (left + cols.first * params->window.dilation_cols) * params->dims.channels;
            window.cols = cols.end - cols.first;
            const mcud_taps counted =
                mcud_taps_inside(left, params->window.dilation_cols, params->window.kernel_cols,
                                 params->counted_left, params->counted_right);
            one_pixel(params, &window, multipliers[counted.end - counted.first - params->least_cols], out);
            out += params->dims.channels;
        }
    }
}
