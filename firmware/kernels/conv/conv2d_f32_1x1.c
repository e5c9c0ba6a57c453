#include "conv2d_f32_1x1.h"

#include "mcud_pixel_f32.h"

/* Four pixels at a time, while there are four; `pixels` lie `step` values apart. A separate function, since its many
 * registers need no stack while the pixels that are left are computed. */
MCUD_NOINLINE void multiply_fours(const mcud_channels_f32 *to, const float *x, int32_t step, int32_t pixels, float *y)
{
    for (; pixels >= 4; pixels -= 4) {
        mcud_pixels_f32(to, x, step, y, to->channels);
        x += 4 * step;
        y += 4 * to->channels;
    }
}

static void multiply(const mcud_channels_f32 *to, const float *x, int32_t step, int32_t pixels, float *y)
{
    multiply_fours(to, x, step, pixels, y);
    for (int32_t i = pixels & ~3; i < pixels; i++) {
        mcud_pixel_f32(to, x + i * step, y + i * to->channels);
    }
}

void mcud_conv2d_f32_1x1(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_1x1_params *params = op->params;
    const mcud_channels_f32 to = {
        .weights = params->weights,
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
