#include "avgpool_f32_gradient.h"

#include "mcud_input_gradient_f32.h"
#include "mcud_simd_f32.h"

static void add_pixel(const void *of, const float *gradient, const float *factor, float *out)
{
    const mcud_avgpool_f32_gradient_params *params = of;
    /* Copies, since the compiler must expect a store to out to change them. */
    const int32_t channels = params->dims.input_channels;
    const float share = *factor;
    for (int32_t c = 0; c < channels; c++) {
        out[c] = mcud_mac_f32(gradient[c], share, out[c]);
    }
}

void mcud_avgpool_f32_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_f32_gradient_params *params = op->params;
    const mcud_input_gradient_f32 of = {
        .params = params,
        .add_pixel = add_pixel,
        .weights = &params->factor, /* the same for all taps */
        .dims = &params->dims,
        .window = &params->window,
        .output_rows = params->output_rows,
        .tap_values = 0,
    };
    mcud_input_gradient_rows_f32(op, &of, first_row, end_row);
}
