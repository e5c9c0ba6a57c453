#include "conv2d_f32_packed_gradient_s8w.h"

#include <string.h>

#include "mcud_back_f32.h"
#include "mcud_window.h"

/* Input channels whose weights are widened at a time. */
#define MCUD_WIDENED 64

/* Widens weights of four output channels and some input channels to float. */
static void widen(const int8_t *w, const float scale[4], int32_t values, float *wide)
{
    const float a = scale[0];
    const float b = scale[1];
    const float c = scale[2];
    const float d = scale[3];
    for (const int8_t *const end = w + 4 * values; w != end; w += 4, wide += 4) {
        wide[0] = (float)w[0] * a;
        wide[1] = (float)w[1] * b;
        wide[2] = (float)w[2] * c;
        wide[3] = (float)w[3] * d;
    }
}

/* Adds the products of a row of the gradient with the weights `tap` of one tap. The result of the row's first pixel is
 * at `out`, and results are `pitch` values apart. */
static void add_tap(const mcud_conv2d_f32_packed_gradient_s8w_params *params, const float *gradient, int32_t pixels,
                    const int8_t *tap, float *wide, float *out, int32_t pitch)
{
    const int32_t inputs = params->dims.input_channels;
    const int32_t outputs = params->dims.output_channels;
    const int32_t taps = params->window.kernel_rows * params->window.kernel_cols;
    for (int32_t k = 0; k < outputs; k += 4, tap += 4 * taps * inputs) {
        const int32_t left = outputs - k;
        for (int32_t c = 0; c < inputs; c += MCUD_WIDENED) {
            const int32_t values = inputs - c < MCUD_WIDENED ? inputs - c : MCUD_WIDENED;
            widen(tap + 4 * c, params->scale + k, values, wide);
            for (int32_t pixel = 0; pixel < pixels; pixel++) {
                const float *from = gradient + pixel * outputs + k;
                float last[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                if (left < 4) {
                    memcpy(last, from, (size_t)left * sizeof *last);
                    from = last;
                }
                mcud_add_back_4_f32(from, wide, values, out + pixel * pitch + c);
            }
        }
    }
}

void mcud_conv2d_f32_packed_gradient_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_packed_gradient_s8w_params *params = op->params;
    const mcud_window *const window = &params->window;
    const int32_t inputs = params->dims.input_channels;
    const int32_t stride = window->stride_cols;
    float *const wide = mcud_row(op->scratch, first_row);
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        memset(out, 0, (size_t)(params->dims.input_cols * inputs) * sizeof *out);
        for (int32_t r = 0; r < window->kernel_rows; r++) {
            const int32_t top = row + window->pad_top - r * window->dilation_rows;
            const int32_t from = top / window->stride_rows;
            if (top < 0 || top != from * window->stride_rows || from >= params->output_rows) {
                continue;
            }
            const float *gradient = mcud_row(op->in[0], from);
            for (int32_t s = 0; s < window->kernel_cols; s++) {
                const int32_t start = s * window->dilation_cols - window->pad_left;
                const mcud_taps cols =
                    mcud_taps_inside(start, stride, params->dims.output_cols, 0, params->dims.input_cols);
                add_tap(params, gradient + cols.first * params->dims.output_channels, cols.end - cols.first,
                        params->weights + 4 * (r * window->kernel_cols + s) * inputs, wide,
                        out + (start + cols.first * stride) * inputs, stride * inputs);
            }
        }
    }
}
