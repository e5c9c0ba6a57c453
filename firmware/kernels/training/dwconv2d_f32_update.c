#include "dwconv2d_f32_update.h"

#include "mcud_tap_pixels_f32.h"

/* The weights of all channels at a tap. */
static void update_tap(const mcud_tap_pixels_f32 *from, const float *weights, float *out)
{
    const mcud_dwconv2d_f32_update_params *params = from->op->params;
    int32_t k = 0;
    for (int32_t c = 0; c < params->dims.input_channels; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            float sum = 0.0f;
            for (int32_t row = from->rows.first; row < from->rows.end; row++) {
                const float *gradient = mcud_tap_gradient_f32(from, row) + k;
                sum = mcud_add_terms_f32(gradient, mcud_tap_input_f32(from, row) + c, &from->cols, sum);
            }
            out[k] = mcud_fused_f32(params->step, sum, params->decay * weights[k]);
        }
    }
}

void mcud_dwconv2d_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_dwconv2d_f32_update_params *params = op->params;
    const int32_t outputs = params->dims.output_channels;
    const float *weights = mcud_row(op->in[0], first_row);
    float *out = mcud_row(op->out, first_row);
    mcud_tap_pixels_f32 from = {
        .op = op, .dims = &params->dims, .window = &params->window, .output_rows = params->output_rows};
    mcud_start_taps_f32(&from, mcud_row(op->scratch, first_row));
    for (int32_t r = 0; r < params->window.kernel_rows; r++) {
        mcud_tap_row_f32(&from, r);
        for (int32_t s = 0; s < params->window.kernel_cols; s++, weights += outputs, out += outputs) {
            mcud_tap_column_f32(&from, s);
            update_tap(&from, weights, out);
        }
    }
}
