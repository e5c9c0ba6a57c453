#include "dwconv2d_f32_input_gradient.h"

#include "mcud_input_gradient_f32.h"
#include "mcud_simd_f32.h"

static void add_multiplied(const mcud_dwconv2d_f32_input_gradient_params *params, const float *gradient,
                           const float *tap, float *out)
{
    int32_t k = 0;
    for (int32_t c = 0; c < params->dims.input_channels; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            out[c] = mcud_fused_f32(gradient[k], tap[k], out[c]);
        }
    }
}

/* With multiplier 1: eight channels at a time are a window of one tap. */
static void add_pixel(const void *of, const float *gradient, const float *tap, float *out)
{
    const mcud_dwconv2d_f32_input_gradient_params *params = of;
    if (params->multiplier != 1) {
        add_multiplied(params, gradient, tap, out);
        return;
    }
    const int32_t channels = params->dims.input_channels;
    const uint32_t offset = 0;
    const void *memory = gradient;
    const mcud_window_taps_f32 taps = {.memory = memory, .offsets = &offset, .rows = 1, .count = 1};
    int32_t c = 0;
    for (; c + 8 <= channels; c += 8) {
        mcud_add_window_8_f32(&taps, c, tap + c, out + c);
    }
    for (; c < channels; c++) {
        out[c] = mcud_fused_f32(gradient[c], tap[c], out[c]);
    }
}

void mcud_dwconv2d_f32_input_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_input_gradient_params *params = op->params;
    const mcud_input_gradient_f32 of = {
        .params = params,
        .add_pixel = add_pixel,
        .weights = params->weights != NULL ? params->weights : mcud_row(op->in[1], 0),
        .dims = &params->dims,
        .window = &params->window,
        .output_rows = params->output_rows,
        .tap_values = params->dims.output_channels,
    };
    mcud_input_gradient_rows_f32(op, &of, first_row, end_row);
}
