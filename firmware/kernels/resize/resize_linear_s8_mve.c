#include "resize_linear_s8_mve.h"

#include "mcud_linear_vector.h"

void mcud_resize_linear_s8_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_resize_linear_s8_mve_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *top = mcud_row(op->in[0], params->rows[row]);
        const int8_t *bottom = mcud_row(op->in[0], params->rows[row] + (params->row_fractions[row] != 0));
        int8_t *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->out_cols; col++, out += params->channels) {
            const uint32_t fraction = params->col_fractions[col];
            const int32_t left = params->cols[col] * params->channels;
            const int32_t right = left + (fraction != 0 ? params->channels : 0);
            const mcud_pixel_s8 at = {
                .near = top + left,
                .right = top + right,
                .below = bottom + left,
                .far = bottom + right,
                .row = row,
                .col = col,
                .col_weight = (int32_t)(fraction >> 10),
            };
            mcud_linear_pixel(params, &at, out);
        }
    }
}
