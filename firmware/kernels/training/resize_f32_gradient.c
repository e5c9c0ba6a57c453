#include "resize_f32_gradient.h"

#include <string.h>

#include "mcud_simd_f32.h"

static void add_pixel(const float *gradient, float share, int32_t channels, float *out)
{
    for (int32_t c = 0; c < channels; c++) {
        out[c] = mcud_mac_f32(share, gradient[c], out[c]);
    }
}

/* Adds the share of a row of the output's gradient. */
static void add_row(const mcud_resize_f32_gradient_params *params, const float *gradient, float share, float *out)
{
    const int32_t channels = params->channels;
    for (int32_t col = 0; col < params->output_cols; col++, gradient += channels) {
        float *left = out + params->cols[col] * channels;
        const float fraction = params->col_fractions[col];
        add_pixel(gradient, share * (1.0f - fraction), channels, left);
        if (fraction != 0.0f) {
            add_pixel(gradient, share * fraction, channels, left + channels);
        }
    }
}

void mcud_resize_f32_gradient(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_resize_f32_gradient_params *params = op->params;
    const int32_t row_values = params->input_cols * params->channels;
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        memset(out, 0, (size_t)row_values * sizeof *out);
        for (int32_t from = 0; from < params->output_rows; from++) {
            const float fraction = params->row_fractions[from];
            if (params->rows[from] == row) {
                add_row(params, mcud_row(op->in[0], from), 1.0f - fraction, out);
            } else if (params->rows[from] + 1 == row && fraction != 0.0f) {
                add_row(params, mcud_row(op->in[0], from), fraction, out);
            }
        }
    }
}
