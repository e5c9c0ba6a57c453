#include "conv2d_f32_input_gradient.h"

#include "mcud_lines_f32.h"
#include "mcud_window.h"

/* Adds the products of a pixel of the output's gradient and a tap to a pixel of the result. */
static void add_pixel(const mcud_conv2d_f32_input_gradient_params *params, const float *gradient, const float *tap,
                      float *out)
{
    const int32_t channels = params->dims.input_channels;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * channels;
    const mcud_terms_f32 terms = {params->dims.output_channels, 1, pitch};
    int32_t c = 0;
    for (; c + 4 <= channels; c += 4) {
        mcud_add_terms_4_f32(gradient, tap + c, &terms, out + c);
    }
    for (; c < channels; c++) {
        out[c] = mcud_add_terms_f32(gradient, tap + c, &terms, out[c]);
    }
}

/* Adds what the windows of one row of the output have at the taps `weights` of one row. */
static void add_row(const mcud_conv2d_f32_input_gradient_params *params, const float *gradient, const float *weights,
                    float *out)
{
    const int32_t stride = params->window.stride_cols;
    for (int32_t s = 0; s < params->window.kernel_cols; s++) {
        const int32_t start = s * params->window.dilation_cols - params->window.pad_left;
        const mcud_taps cols =
            mcud_taps_inside(start, stride, params->dims.output_cols, 0, params->dims.input_cols);
        for (int32_t col = cols.first; col < cols.end; col++) {
            add_pixel(params, gradient + col * params->dims.output_channels,
                      weights + s * params->dims.input_channels,
                      out + (start + col * stride) * params->dims.input_channels);
        }
    }
}

void mcud_conv2d_f32_input_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_input_gradient_params *params = op->params;
    const float *weights = params->weights != NULL ? params->weights : mcud_row(op->in[1], 0);
    const int32_t tap_row = params->window.kernel_cols * params->dims.input_channels;
    const int32_t row_values = params->dims.input_cols * params->dims.input_channels;
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        memset(out, 0, (size_t)row_values * sizeof *out);
        for (int32_t r = 0; r < params->window.kernel_rows; r++) {
            const int32_t top = row + params->window.pad_top - r * params->window.dilation_rows;
            const int32_t from = top / params->window.stride_rows;
            if (top >= 0 && top == from * params->window.stride_rows && from < params->output_rows) {
                add_row(params, mcud_row(op->in[0], from), weights + r * tap_row, out);
            }
        }
    }
}
