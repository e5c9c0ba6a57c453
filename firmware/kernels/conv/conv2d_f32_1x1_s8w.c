#include "conv2d_f32_1x1_s8w.h"

#include "mcud_dot_s8w.h"

/* Multiplies pixels that are `step` values apart. */
static void multiply(const mcud_channels_s8w *to, const float *x, int32_t step, int32_t pixels, float *y)
{
    for (; pixels >= 4; pixels -= 4) {
        mcud_pixels_s8w(to, x, step, y);
        x += 4 * step;
        y += 4 * to->channels;
    }
    for (; pixels > 0; pixels--) {
        mcud_pixel_s8w(to, x, y);
        x += step;
        y += to->channels;
    }
}

void mcud_conv2d_f32_1x1_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_1x1_s8w_params *params = op->params;
    const mcud_channels_s8w to = {
        .weights = params->weights,
        .scale = params->scale,
        .bias = params->bias,
        .channels = params->dims.output_channels,
        .depth = params->dims.input_channels,
        .act = {params->act.min, params->act.max},
    };
    float *out = mcud_row(op->out, first_row);
    for (int32_t row = first_row; row < end_row;) {
        const float *in = mcud_row(op->in[0], row * params->stride_rows);
        const int32_t run_end = params->rows_join ? mcud_run_end(op->in[0], row, end_row) : row + 1;
        const int32_t pixels = (run_end - row) * params->dims.output_cols;
        multiply(&to, in, params->pixel_step, pixels, out);
        out += pixels * params->dims.output_channels;
        row = run_end;
    }
}
