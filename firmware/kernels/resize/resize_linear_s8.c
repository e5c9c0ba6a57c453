#include "resize_linear_s8.h"

#include "mcud_linear_s8.h"

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
            const int32_t col_weight = (int32_t)(params->col_fractions[col] >> 10); /* see mcud_linear_s8.h */
            for (int32_t c = 0; c < channels; c++) {
                const mcud_square_s8 at = {
                    top[left + c] - zero_point,
                    top[right + c] - zero_point,
                    bottom[left + c] - zero_point,
                    bottom[right + c] - zero_point,
                    row,
                    col,
                    col_weight,
                };
                *out++ = (int8_t)mcud_linear_value(params, &at);
            }
        }
    }
}
