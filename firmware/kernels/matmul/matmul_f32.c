#include "matmul_f32.h"

#include "mcud_matrix.h"

static void multiply(const mcud_op *op, const float *a, const float *matrix, float *out)
{
    const mcud_matmul_f32_params *params = op->params;
    const int32_t n = params->n;
    for (int32_t j = 0; j < n; j++) {
        out[j] = 0.0f;
    }
    for (int32_t i = 0; i < params->k; i++) {
        const float value = a[i];
        const float *b = mcud_matrix_line(op->in[1], matrix, i, n * (int32_t)sizeof *a);
        for (int32_t j = 0; j < n; j++) {
            out[j] += value * b[j];
        }
    }
}

void mcud_matmul_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *a = mcud_row(op->in[0], row);
        const float *matrix = mcud_matrix(op->in[1], params->batched, params->k, row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            multiply(op, a, matrix, out);
            a += params->k;
            out += params->n;
        }
    }
}
