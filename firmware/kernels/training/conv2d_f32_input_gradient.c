#include "conv2d_f32_input_gradient.h"

#include "mcud_input_gradient_f32.h"
#include "mcud_unpacked_back_f32.h"

static void add_pixel(const void *of, const float *gradient, const float *tap, float *out)
{
    const mcud_conv2d_f32_input_gradient_params *params = of;
    const int32_t channels = params->dims.input_channels;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * channels;
    const mcud_terms_f32 terms = {params->dims.output_channels, 1, pitch};
    int32_t c = 0;
    for (; c + 8 <= channels; c += 8) {
        mcud_add_unpacked_back_1x8_f32(gradient, tap + c, &terms, out + c);
    }
    for (; c + 4 <= channels; c += 4) {
        mcud_add_terms_4_f32(gradient, tap + c, &terms, out + c);
    }
    for (; c < channels; c++) {
        out[c] = mcud_add_terms_f32(gradient, tap + c, &terms, out[c]);
    }
}

static void add_pair(const void *of, const float *gradient, const float *tap, float *out)
{
    const mcud_conv2d_f32_input_gradient_params *params = of;
    const int32_t channels = params->dims.input_channels;
    const int32_t apart = params->window.stride_cols * channels;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * channels;
    const mcud_terms_f32 terms = {params->dims.output_channels, 1, pitch};
    int32_t c = 0;
    for (; c + 8 <= channels; c += 8) {
        mcud_add_unpacked_back_2x8_f32(gradient, tap + c, &terms, out + c, apart);
    }
    for (; c + 4 <= channels; c += 4) {
        mcud_add_unpacked_back_2x4_f32(gradient, tap + c, &terms, out + c, apart);
    }
    for (; c < channels; c++) {
        out[c] = mcud_add_terms_f32(gradient, tap + c, &terms, out[c]);
        out[apart + c] = mcud_add_terms_f32(gradient + terms.count, tap + c, &terms, out[apart + c]);
    }
}

void mcud_conv2d_f32_input_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_input_gradient_params *params = op->params;
    const mcud_input_gradient_f32 of = {
        .params = params,
        .add_pixel = add_pixel,
        .add_pair = add_pair,
        .weights = mcud_row(op->in[1], 0),
        .dims = &params->dims,
        .window = &params->window,
        .output_rows = params->output_rows,
        .tap_values = params->dims.input_channels,
    };
    mcud_input_gradient_rows_f32(op, &of, first_row, end_row);
}
