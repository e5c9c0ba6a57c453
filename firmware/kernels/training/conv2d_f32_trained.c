#include "conv2d_f32_trained.h"

#include "mcud_trained_f32.h"
#include "mcud_window.h"

/* The columns of the output whose windows have no padding. */
static mcud_taps inner_columns(const mcud_conv2d_f32_trained_params *params)
{
    const mcud_window *const window = &params->window;
    const int32_t last_tap = (window->kernel_cols - 1) * window->dilation_cols;
    return mcud_taps_inside(-window->pad_left, window->stride_cols, params->dims.output_cols, 0,
                            params->dims.input_cols - last_tap);
}

void mcud_conv2d_f32_trained(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_trained_params *params = op->params;
    const mcud_window *const window = &params->window;
    const mcud_taps inner = inner_columns(params);
    const int32_t inputs = params->dims.input_channels;
    const int32_t pixel_bytes = inputs * (int32_t)sizeof(float);
    const float *weights = mcud_row(op->in[1], 0);
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    float *out = mcud_row(op->out, first_row);
    mcud_window_pixels_f32 from = {
        .act = params->act,
        .outputs = params->dims.output_channels,
        .bias = mcud_row(op->in[2], 0),
        .apart = window->dilation_cols * inputs,
        .w_row = window->kernel_cols * inputs,
        .pitches = {window->stride_cols * inputs, window->kernel_rows * window->kernel_cols * inputs},
    };
    for (int32_t row = first_row, next; row < end_row; row = next) {
        const int32_t top = row * window->stride_rows - window->pad_top;
        const mcud_taps rows = mcud_row_taps(window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, window->dilation_rows, rows, offsets);
        from.offsets = offsets + rows.first;
        from.rows = rows.end - rows.first;
        next = params->rows_join ? mcud_run_end(op->in[0], row, end_row) : row + 1;
        for (int32_t col = 0, count; col < params->dims.output_cols; col += count) {
            const int32_t left = col * window->stride_cols - window->pad_left;
            const mcud_taps cols = mcud_col_taps(window, left, params->dims.input_cols);
            const int32_t taps = cols.end - cols.first;
            count = col >= inner.first && col < inner.end ? inner.end - col : 1;
            from.weights = weights + (rows.first * window->kernel_cols + cols.first) * inputs;
            from.memory = op->in[0]->memory + (left + cols.first * window->dilation_cols) * pixel_bytes;
            from.runs = window->dilation_cols == 1 ? 1 : taps;
            from.values = window->dilation_cols == 1 ? taps * inputs : inputs;
            mcud_multiply_windows_f32(&from, count * (next - row), out);
            out += count * (next - row) * params->dims.output_channels;
        }
    }
}
