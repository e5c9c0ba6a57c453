#include "conv2d_f32_update.h"

#include "mcud_tap_pixels_f32.h"

/* The weights of output channel k at a tap, one for each input channel. */
static void update_line(const mcud_tap_pixels_f32 *from, int32_t k, const float *weights, float *out)
{
    const mcud_conv2d_f32_update_params *params = from->op->params;
    for (int32_t c = 0; c < params->dims.input_channels; c += 4) {
        const int32_t left = params->dims.input_channels - c;
        float sums[4] = {0.0f};
        for (int32_t row = from->rows.first; row < from->rows.end; row++) {
            const float *x = mcud_tap_input_f32(from, row) + c;
            const float *g = mcud_tap_gradient_f32(from, row) + k;
            if (left >= 4) {
                mcud_add_terms_4_f32(g, x, &from->cols, sums);
                continue;
            }
            for (int32_t i = 0; i < left; i++) {
                sums[i] = mcud_add_terms_f32(g, x + i, &from->cols, sums[i]);
            }
        }
        for (int32_t i = 0; i < (left < 4 ? left : 4); i++) {
            out[c + i] = mcud_fused_f32(params->step, sums[i], params->decay * weights[c + i]);
        }
    }
}

/* The same for a gradient of one pixel: the gradient of a weight is one product, x times g. */
static void update_line_by_pixel(const mcud_conv2d_f32_update_params *params, const float *x, float g,
                                 const float *weights, float *out)
{
    const int32_t inputs = params->dims.input_channels;
    const float decay = params->decay;
    const float factor = params->step * g;
    int32_t c = 0;
    for (; c + 4 <= inputs; c += 4) { /* reads four weights before it writes, as out may be their memory */
        const float w0 = mcud_fused_f32(factor, x[c], decay * weights[c]);
        const float w1 = mcud_fused_f32(factor, x[c + 1], decay * weights[c + 1]);
        const float w2 = mcud_fused_f32(factor, x[c + 2], decay * weights[c + 2]);
        const float w3 = mcud_fused_f32(factor, x[c + 3], decay * weights[c + 3]);
        out[c] = w0;
        out[c + 1] = w1;
        out[c + 2] = w2;
        out[c + 3] = w3;
    }
    for (; c < inputs; c++) {
        out[c] = mcud_fused_f32(factor, x[c], decay * weights[c]);
    }
}

/* The weights of all output channels at a tap. */
static void update_tap(const mcud_tap_pixels_f32 *from, int32_t tap, const float *weights, float *out)
{
    const mcud_conv2d_f32_update_params *params = from->op->params;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * params->dims.input_channels;
    int32_t line = tap * params->dims.input_channels;
    const int32_t inside = from->rows.first < from->rows.end && from->cols.count > 0;
    if (inside && params->output_rows == 1 && params->dims.output_cols == 1) {
        const float *x = mcud_tap_input_f32(from, 0);
        const float *g = mcud_tap_gradient_f32(from, 0);
        for (int32_t k = 0; k < params->dims.output_channels; k++, line += pitch) {
            update_line_by_pixel(params, x, g[k], weights + line, out + line);
        }
        return;
    }
    for (int32_t k = 0; k < params->dims.output_channels; k++, line += pitch) {
        update_line(from, k, weights + line, out + line);
    }
}

void mcud_conv2d_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_conv2d_f32_update_params *params = op->params;
    const float *weights = mcud_row(op->in[0], first_row);
    float *out = mcud_row(op->out, first_row);
    mcud_tap_pixels_f32 from = {
        .op = op, .dims = &params->dims, .window = &params->window, .output_rows = params->output_rows};
    mcud_start_taps_f32(&from, mcud_row(op->scratch, first_row));
    for (int32_t r = 0; r < params->window.kernel_rows; r++) {
        mcud_tap_row_f32(&from, r);
        for (int32_t s = 0; s < params->window.kernel_cols; s++) {
            mcud_tap_column_f32(&from, s);
            update_tap(&from, r * params->window.kernel_cols + s, weights, out);
        }
    }
}
