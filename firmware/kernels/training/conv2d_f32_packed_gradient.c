#include "conv2d_f32_packed_gradient.h"

#include "mcud_back_f32.h"
#include "mcud_input_gradient_f32.h"

static void add_pixel(const void *of, const float *gradient, const float *tap, float *out)
{
    const mcud_conv2d_f32_packed_gradient_params *params = of;
    const int32_t inputs = params->dims.input_channels;
    const int32_t pitch = 4 * params->window.kernel_rows * params->window.kernel_cols * inputs;
    int32_t left = params->dims.output_channels;
    for (; left >= 4; left -= 4, gradient += 4, tap += pitch) {
        mcud_add_back_4_f32(gradient, tap, inputs, out);
    }
    if (left > 0) {
        float last[4] = {0.0f};
        memcpy(last, gradient, (size_t)left * sizeof *last);
        mcud_add_back_4_f32(last, tap, inputs, out);
    }
}

void mcud_conv2d_f32_packed_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_packed_gradient_params *params = op->params;
    const mcud_input_gradient_f32 of = {
        .params = params,
        .add_pixel = add_pixel,
        .weights = params->weights,
        .dims = &params->dims,
        .window = &params->window,
        .output_rows = params->output_rows,
        .tap_values = 4 * params->dims.input_channels,
    };
    mcud_input_gradient_rows_f32(op, &of, first_row, end_row);
}
