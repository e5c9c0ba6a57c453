#include "matmul_s8_bt.h"

#include "mcud_matrix.h"
#include "mcud_quant.h"

void mcud_matmul_s8_bt(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_bt_params *params = op->params;
    const mcud_tensor *second = op->in[1];
    const int32_t k = params->k;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_row(op->in[0], row);
        const int8_t *matrix = mcud_matrix(second, params->batched, params->n, row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            for (int32_t j = 0; j < params->n; j++) {
                const int8_t *b = mcud_matrix_line(second, matrix, j, k);
                int32_t sum = 0;
                for (int32_t l = 0; l < k; l++) {
                    sum += (a[l] - params->a_zero_point) * (b[l] - params->b_zero_point);
                }
                const int32_t scaled = mcud_scale(sum, params->multiplier, params->shift);
                *out++ = (int8_t)mcud_clamp(params->output_zero_point + scaled, -128, 127);
            }
            a += k;
        }
    }
}
