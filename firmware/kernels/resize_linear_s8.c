#include "resize_linear_s8.h"

#include "mcud_quant.h"
#include "mcud_quant_f32.h"

/* The four neighbours, without their zero point, and the position of the output in the tables. */
typedef struct {
    int32_t near;
    int32_t right;
    int32_t below;
    int32_t far;
    int32_t row;
    int32_t col;
    int32_t col_weight; /* of `right` and `far`, with 22 fraction bits */
} square;

/* Not fused with an addition, whatever the compiler prefers: all machines have to agree on ties. */
static float product(float a, float b)
{
    const volatile float rounded = a * b;
    return rounded;
}

static int32_t in_float(const mcud_resize_linear_s8_params *params, const square *at)
{
    /* At the last row and column the reference takes half of it twice, which rounds differently. */
    const float row_share = (float)params->row_fractions[at->row] / 4294967296.0f;
    const float col_share = (float)params->col_fractions[at->col] / 4294967296.0f;
    const float row_fraction = params->rows[at->row] == params->last_row ? 0.5f : row_share;
    const float col_fraction = params->cols[at->col] == params->last_col ? 0.5f : col_share;
    const float row_rest = 1.0f - row_fraction;
    const float col_rest = 1.0f - col_fraction;
    const float scale = params->input_scale;
    const float value = product(col_rest * row_rest, scale * (float)at->near) +
                        product(col_fraction * row_rest, scale * (float)at->right) +
                        product(col_rest * row_fraction, scale * (float)at->below) +
                        product(col_fraction * row_fraction, scale * (float)at->far);
    return mcud_quantized(value, params->output_scale, params->output_zero_point, -128, 127);
}

static int32_t interpolate(const mcud_resize_linear_s8_params *params, const square *at)
{
    const int32_t col_rest = ((int32_t)1 << 22) - at->col_weight;
    const int32_t top = at->near * col_rest + at->right * at->col_weight;
    const int32_t bottom = at->below * col_rest + at->far * at->col_weight;
    const int64_t sum = (int64_t)top * params->row_weights[at->row] +
                        (int64_t)bottom * params->next_row_weights[at->row];
    const int64_t up = sum + ((int64_t)1 << (params->shift - 1));
    const int64_t near_tie = (int64_t)1 << (params->shift - 12);
    const int64_t rounded = (up + near_tie) >> params->shift;
    if (rounded != (up - near_tie) >> params->shift) {
        return in_float(params, at);
    }
    return mcud_clamp(params->output_zero_point + (int32_t)rounded, -128, 127);
}

void mcud_resize_linear_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_resize_linear_s8_params *params = op->params;
    const int32_t channels = params->channels;
    const int32_t zero_point = params->input_zero_point;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *top = mcud_row(op->in[0], params->rows[row]);
        const int8_t *bottom = mcud_row(op->in[0], params->rows[row] + (params->row_fractions[row] != 0));
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->out_cols; col++) {
            const int32_t left = params->cols[col] * channels;
            const int32_t right = left + (params->col_fractions[col] != 0 ? channels : 0);
            const int32_t col_weight = (int32_t)(params->col_fractions[col] >> 10);
            for (int32_t c = 0; c < channels; c++) {
                const square at = {
                    top[left + c] - zero_point,
                    top[right + c] - zero_point,
                    bottom[left + c] - zero_point,
                    bottom[right + c] - zero_point,
                    row,
                    col,
                    col_weight,
                };
                *out++ = (int8_t)interpolate(params, &at);
            }
        }
    }
}
