#include "maxpool_f32_gradient.h"

#include <string.h>

#include "mcud_window.h"

/* Adds the values of a row of the output's gradient whose tap is in row `r` of the window. */
static void add_row(const mcud_maxpool_f32_gradient_params *params, const float *gradient, const uint8_t *taps, int32_t r,
                    float *out)
{
    const int32_t channels = params->dims.channels;
    const int32_t pitch = params->window.dilation_cols * channels;
    int32_t left = -params->window.pad_left;
    for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
        const mcud_taps inside = mcud_col_taps(&params->window, left, params->dims.input_cols);
        const uint32_t first = (uint32_t)(r * params->window.kernel_cols + inside.first);
        const uint32_t count = (uint32_t)(inside.end - inside.first);
        const int32_t start = (left + inside.first * params->window.dilation_cols) * channels;
        for (int32_t c = 0; c < channels; c++) {
            const uint32_t s = taps[c] - first; /* one comparison for both ends */
            if (s < count) {
                out[start + (int32_t)s * pitch + c] += gradient[c];
            }
        }
        gradient += channels;
        taps += channels;
    }
}

void mcud_maxpool_f32_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_maxpool_f32_gradient_params *params = op->params;
    const mcud_window *const window = &params->window;
    const int32_t row_values = params->dims.input_cols * params->dims.channels;
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        memset(out, 0, (size_t)row_values * sizeof *out);
        for (int32_t r = 0; r < window->kernel_rows; r++) {
            const int32_t top = row + window->pad_top - r * window->dilation_rows;
            const int32_t from = top / window->stride_rows;
            if (top >= 0 && top == from * window->stride_rows && from < params->output_rows) {
                add_row(params, mcud_row(op->in[0], from), mcud_row(op->in[1], from), r, out);
            }
        }
    }
}
