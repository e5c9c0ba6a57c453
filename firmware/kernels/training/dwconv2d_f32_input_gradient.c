#include "dwconv2d_f32_input_gradient.h"

#include "mcud_input_gradient_f32.h"
#include "mcud_lines_f32.h"
#include "mcud_scaled_f32.h"

static void add_pixel(const mcud_dwconv2d_f32_input_gradient_params *params, const float *gradient, const float *tap,
                      float *out)
{
    int32_t k = 0;
    for (int32_t c = 0; c < params->dims.input_channels; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            out[c] = mcud_mac_f32(gradient[k], tap[k], out[c]);
        }
    }
}

/* With multiplier 1 eight channels at a time. */
static void add_columns(const void *of, const float *gradient, const float *tap, int32_t count, float *out,
                        int32_t apart)
{
    const mcud_dwconv2d_f32_input_gradient_params *params = of;
    const int32_t channels = params->dims.input_channels;
    const int32_t outputs = params->dims.output_channels;
    if (params->multiplier != 1) {
        for (; count > 0; count--, gradient += outputs, out += apart) {
            add_pixel(params, gradient, tap, out);
        }
        return;
    }
    const mcud_terms_f32 columns = {count, channels, apart};
    int32_t c = 0;
    for (; c + 8 <= channels; c += 8) {
        mcud_add_scaled_8_f32(gradient + c, tap + c, &columns, out + c);
    }
    for (; c < channels; c++) {
        mcud_add_scaled_1_f32(gradient + c, tap[c], &columns, out + c);
    }
}

void mcud_dwconv2d_f32_input_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_input_gradient_params *params = op->params;
    const mcud_input_gradient_f32 of = {
        .params = params,
        .add_columns = add_columns,
        .weights = params->weights != NULL ? params->weights : mcud_row(op->in[1], 0),
        .dims = &params->dims,
        .window = &params->window,
        .output_rows = params->output_rows,
        .tap_values = params->dims.output_channels,
    };
    mcud_input_gradient_rows_f32(op, &of, first_row, end_row);
}
