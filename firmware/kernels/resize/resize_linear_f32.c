#include "resize_linear_f32.h"

#include "mcud_linear_f32.h"

static float as_float(uint32_t fraction)
{
    return (float)fraction / 4294967296.0f;
}

void mcud_resize_linear_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_resize_linear_f32_params *params = op->params;
    const int32_t channels = params->channels;
    for (int32_t row = first_row; row < end_row; row++) {
        const float row_fraction = as_float(params->row_fractions[row]);
        const float row_rest = 1.0f - row_fraction;
        const float *top = mcud_row(op->in[0], params->rows[row]);
        const float *bottom = mcud_row(op->in[0], params->rows[row] + (params->row_fractions[row] != 0));
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->out_cols; col++, out += channels) {
            const float col_fraction = as_float(params->col_fractions[col]);
            const float col_rest = 1.0f - col_fraction;
            const int32_t left = params->cols[col] * channels;
            const int32_t right = left + (params->col_fractions[col] != 0 ? channels : 0);
            const mcud_square_f32 at = {
                .near = top + left,
                .right = top + right,
                .below = bottom + left,
                .far = bottom + right,
                .near_weight = col_rest * row_rest,
                .right_weight = col_fraction * row_rest,
                .below_weight = col_rest * row_fraction,
                .far_weight = col_fraction * row_fraction,
            };
            mcud_linear_pixel_f32(&at, channels, out);
        }
    }
}
