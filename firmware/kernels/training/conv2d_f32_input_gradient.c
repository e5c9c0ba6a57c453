#include "conv2d_f32_input_gradient.h"

#include "mcud_input_gradient_f32.h"
#include "mcud_lines_f32.h"

static void add_pixel(const void *of, const float *gradient, const float *tap, float *out)
{
    const mcud_conv2d_f32_input_gradient_params *params = of;
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

/* Adds the products of two pixels, `apart` values from each other in the result, and four input channels. */
static void add_2x4(const float *gradient, const float *tap, const mcud_terms_f32 *terms, float *out, int32_t apart)
{
    const float *second = gradient + terms->count;
    float a0 = out[0], a1 = out[1], a2 = out[2], a3 = out[3];
    float b0 = out[apart], b1 = out[apart + 1], b2 = out[apart + 2], b3 = out[apart + 3];
    for (const float *const end = gradient + terms->count; gradient != end; tap += terms->w_pitch) {
        const float w0 = tap[0], w1 = tap[1], w2 = tap[2], w3 = tap[3];
        const float g = *gradient++;
        const float h = *second++;
        a0 = mcud_fused_f32(g, w0, a0);
        a1 = mcud_fused_f32(g, w1, a1);
        a2 = mcud_fused_f32(g, w2, a2);
        a3 = mcud_fused_f32(g, w3, a3);
        b0 = mcud_fused_f32(h, w0, b0);
        b1 = mcud_fused_f32(h, w1, b1);
        b2 = mcud_fused_f32(h, w2, b2);
        b3 = mcud_fused_f32(h, w3, b3);
    }
    out[0] = a0, out[1] = a1, out[2] = a2, out[3] = a3;
    out[apart] = b0, out[apart + 1] = b1, out[apart + 2] = b2, out[apart + 3] = b3;
}

static void add_pair(const void *of, const float *gradient, const float *tap, float *out)
{
    const mcud_conv2d_f32_input_gradient_params *params = of;
    const int32_t channels = params->dims.input_channels;
    const int32_t apart = params->window.stride_cols * channels;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * channels;
    const mcud_terms_f32 terms = {params->dims.output_channels, 1, pitch};
    int32_t c = 0;
    for (; c + 4 <= channels; c += 4) {
        add_2x4(gradient, tap + c, &terms, out + c, apart);
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
