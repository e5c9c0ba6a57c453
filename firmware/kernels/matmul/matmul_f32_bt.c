#include "matmul_f32_bt.h"

#include "mcud_matrix.h"

void mcud_matmul_f32_bt(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_f32_bt_params *params = op->params;
    const mcud_tensor *second = op->in[1];
    const int32_t k = params->k;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *a = mcud_row(op->in[0], row);
        const float *matrix = mcud_matrix(second, params->batched, params->n, row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            for (int32_t j = 0; j < params->n; j++) {
                const float *b = mcud_matrix_line(second, matrix, j, k * (int32_t)sizeof *a);
                float sum = 0.0f;
                for (int32_t l = 0; l < k; l++) {
                    sum += a[l] * b[l];
                }
                *out++ = sum;
            }
            a += k;
        }
    }
}
