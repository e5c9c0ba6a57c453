#include "resize_linear_f32.h"

/* Weighted mean of the four neighbours, in the reference's order of operations. */
static float blend(float row_fraction, float col_fraction, float near, float right, float below, float far)
{
    const float row_rest = 1.0f - row_fraction;
    const float col_rest = 1.0f - col_fraction;
    return col_rest * row_rest * near + col_fraction * row_rest * right + col_rest * row_fraction * below +
           col_fraction * row_fraction * far;
}

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
        const float *top = mcud_row(op->in[0], params->rows[row]);
        const float *bottom = mcud_row(op->in[0], params->rows[row] + (params->row_fractions[row] != 0));
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->out_cols; col++) {
            const float col_fraction = as_float(params->col_fractions[col]);
            const int32_t left = params->cols[col] * channels;
            const int32_t right = left + (params->col_fractions[col] != 0 ? channels : 0);
            for (int32_t c = 0; c < channels; c++) {
                *out++ = blend(row_fraction, col_fraction, top[left + c], top[right + c], bottom[left + c],
                               bottom[right + c]);
            }
        }
    }
}
