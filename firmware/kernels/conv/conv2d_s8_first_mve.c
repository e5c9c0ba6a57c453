#include "conv2d_s8_first_mve.h"

#include "mcud_clip_s8.h"
#include "mcud_columns_s8.h"
#include "mcud_pixels_s8.h"
#include "mcud_window.h"

/* Copies to x the columns under the windows of output row `row`, from input column -pad_left on. */
static void find_columns(const mcud_op *op, int32_t row, int32_t columns, const mcud_column_places *by, int8_t *x)
{
    const mcud_conv2d_s8_first_mve_params *params = op->params;
    const int32_t channels = params->dims.input_channels;
    const int32_t column = params->window.kernel_rows * channels;
    const int32_t left = -params->window.pad_left;
    const int32_t top = row * params->window.stride_rows - params->window.pad_top;
    const mcud_taps rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
    const mcud_taps inside = mcud_taps_inside(left, 1, columns, 0, params->dims.input_cols);
    if (rows.end - rows.first < params->window.kernel_rows) {
        mcud_vector_fill(x, params->input_zero_point, columns * column);
    } else {
        mcud_vector_fill(x, params->input_zero_point, inside.first * column);
        mcud_vector_fill(x + inside.end * column, params->input_zero_point, (columns - inside.end) * column);
    }
    x += inside.first * column;
    for (int32_t tap = rows.first; tap < rows.end; tap++) {
        const int8_t *const from = mcud_row(op->in[0], top + tap * params->window.dilation_rows);
        mcud_to_columns(x + tap * channels, by, from + (left + inside.first) * channels,
                        (inside.end - inside.first) * channels);
    }
}

void mcud_conv2d_s8_first_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_first_mve_params *params = op->params;
    const int32_t column = params->window.kernel_rows * params->dims.input_channels;
    const mcud_column_places by = mcud_places_of_columns(params->dims.input_channels, column);
    const mcud_vector_channels to = {
        .records = params->packed_weights,
        .channels = params->dims.output_channels,
        .pitch = params->dims.output_channels,
        .depth = params->window.kernel_cols * column,
        .finish = {params->quant.zero_point, params->quant.left_shift, 0},
        .reads_on = 1,
    };
    const int32_t outputs = params->dims.output_cols;
    const int32_t columns = (outputs - 1) * params->window.stride_cols + params->window.kernel_cols;
    int8_t *const x = mcud_row(op->scratch, first_row);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    for (int32_t row = first_row; row < end_row; row++, y += outputs * to.channels) {
        find_columns(op, row, columns, &by, x);
        mcud_vector_pixels(&to, x, params->window.stride_cols * column, outputs, y);
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
