#include "resize_linear_s16.h"

enum { ONE = 1 << 10 };

static int32_t between(int32_t first, int32_t second, int32_t weight)
{
    return first * (ONE - weight) + second * weight;
}

static int16_t rounded(int64_t value)
{
    const int64_t half = (int64_t)ONE * ONE / 2;
    return (int16_t)((value > 0 ? value + half : value - half) / ((int64_t)ONE * ONE));
}

void mcud_resize_linear_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_resize_linear_s16_params *params = op->params;
    const int32_t channels = params->channels;
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *top = mcud_row(op->in[0], params->rows[2 * row]);
        const int16_t *bottom = mcud_row(op->in[0], params->rows[2 * row + 1]);
        const int32_t row_weight = params->row_weights[row];
        int16_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->out_cols; col++) {
            const int32_t left = params->cols[2 * col] * channels;
            const int32_t right = params->cols[2 * col + 1] * channels;
            const int32_t weight = params->col_weights[col];
            for (int32_t c = 0; c < channels; c++) {
                const int32_t first = between(top[left + c], bottom[left + c], row_weight);
                const int32_t second = between(top[right + c], bottom[right + c], row_weight);
                *out++ = rounded((int64_t)first * (ONE - weight) + (int64_t)second * weight);
            }
        }
    }
}
