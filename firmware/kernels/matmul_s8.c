#include "matmul_s8.h"

#include <string.h>

#include "mcud_matrix.h"
#include "mcud_quant.h"

/* sums[j] = sum over i of (a[i] - a_zero_point) * b[i][j]; returns the sum of a[i] - a_zero_point. */
static int32_t multiply(const mcud_op *op, const int8_t *a, const int8_t *matrix, int32_t *sums)
{
    const mcud_matmul_s8_params *params = op->params;
    const int32_t n = params->n;
    int32_t a_sum = 0;
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int32_t i = 0; i < params->k; i++) {
        const int32_t value = a[i] - params->a_zero_point;
        const int8_t *b = mcud_matrix_line(op->in[1], matrix, i, n);
        for (int32_t j = 0; j < n; j++) {
            sums[j] += value * b[j];
        }
        a_sum += value;
    }
    return a_sum;
}

void mcud_matmul_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_params *params = op->params;
    int32_t *sums = mcud_row(op->scratch, first_row);
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_row(op->in[0], row);
        const int8_t *matrix = mcud_matrix(op->in[1], params->batched, params->k, row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            const int32_t shared = multiply(op, a, matrix, sums) * params->b_zero_point;
            for (int32_t j = 0; j < params->n; j++) {
                const int32_t scaled = mcud_scale(sums[j] - shared, params->multiplier, params->shift);
                *out++ = (int8_t)mcud_clamp(params->output_zero_point + scaled, -128, 127);
            }
            a += params->k;
        }
    }
}
