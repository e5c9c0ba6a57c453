#include "matmul_s16.h"

#include "mcud_matrix.h"
#include "mcud_quant_s16.h"

enum { COLUMNS = 4 };

static int16_t finished(const mcud_matmul_s16_params *params, int64_t sum)
{
    const int64_t scaled = mcud_scale_wide(sum * ((int64_t)1 << params->left_shift), params->multiplier, params->shift);
    return (int16_t)(scaled < INT16_MIN ? INT16_MIN : (scaled > INT16_MAX ? INT16_MAX : scaled));
}

/* One line of the product, with a transposed matrix. */
static void multiply_lines(const mcud_matmul_s16_params *params, const int16_t *a, mcud_matrix b, int16_t *out)
{
    for (int32_t j = 0; j < params->n; j++) {
        const int16_t *line = mcud_matrix_line(&b, j);
        int64_t sum = 0;
        for (int32_t l = 0; l < params->k; l++) {
            sum += a[l] * line[l];
        }
        out[j] = finished(params, sum);
    }
}

/* One line of the product, a few columns at a time. */
static void multiply_columns(const mcud_matmul_s16_params *params, const int16_t *a, mcud_matrix b, int16_t *out)
{
    for (int32_t j = 0; j < params->n; j += COLUMNS) {
        const int32_t count = params->n - j < COLUMNS ? params->n - j : COLUMNS;
        int64_t sums[COLUMNS] = {0};
        for (int32_t l = 0; l < params->k; l++) {
            const int16_t *line = mcud_matrix_line(&b, l);
            for (int32_t i = 0; i < count; i++) {
                sums[i] += a[l] * line[j + i];
            }
        }
        for (int32_t i = 0; i < count; i++) {
            out[j + i] = finished(params, sums[i]);
        }
    }
}

void mcud_matmul_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s16_params *params = op->params;
    const int32_t matrices = params->batched != 0 ? 0 : params->m; /* in a row of b */
    const int32_t lines = params->transposed != 0 ? params->n : params->k;
    const int32_t line_bytes = (params->transposed != 0 ? params->k : params->n) * (int32_t)sizeof(int16_t);
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *a = mcud_row(op->in[0], row);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            const mcud_matrix b = mcud_matrix_of(op->in[1], matrices != 0 ? i : row, matrices, lines, line_bytes);
            if (params->transposed != 0) {
                multiply_lines(params, a, b, out);
            } else {
                multiply_columns(params, a, b, out);
            }
            a += params->k;
            out += params->n;
        }
    }
}
