#include "grouped_conv2d_f32_input_gradient.h"

#include "mcud_input_gradient_f32.h"
#include "mcud_lines_f32.h"

static void add_pixel(const void *of, const float *gradient, const float *tap, float *out)
{
    const mcud_grouped_conv2d_f32_input_gradient_params *params = of;
    const int32_t inputs = params->dims.input_channels / params->groups;
    const int32_t outputs = params->dims.output_channels / params->groups;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * inputs;
    const mcud_terms_f32 terms = {outputs, 1, pitch};
    for (int32_t group = 0; group < params->groups; group++) {
        int32_t c = 0;
        for (; c + 4 <= inputs; c += 4) {
            mcud_add_terms_4_f32(gradient, tap + c, &terms, out + c);
        }
        for (; c < inputs; c++) {
            out[c] = mcud_add_terms_f32(gradient, tap + c, &terms, out[c]);
        }
        gradient += outputs;
        tap += outputs * pitch;
        out += inputs;
    }
}

void mcud_grouped_conv2d_f32_input_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_grouped_conv2d_f32_input_gradient_params *params = op->params;
    const mcud_input_gradient_f32 of = {
        .params = params,
        .add_pixel = add_pixel,
        .weights = params->weights,
        .dims = &params->dims,
        .window = &params->window,
        .output_rows = params->output_rows,
        .tap_values = params->dims.input_channels / params->groups,
    };
    mcud_input_gradient_rows_f32(op, &of, first_row, end_row);
}
