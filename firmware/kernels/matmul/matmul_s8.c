#include "matmul_s8.h"

#include "mcud_matrix.h"
#include "mcud_product_s8.h"

/* One line of the product, a block of columns at a time; `matrix` is NULL if the lines of b lie in several blocks. */
static void multiply(const mcud_op *op, const int8_t *a, const int8_t *matrix, int8_t *out)
{
    const mcud_matmul_s8_params *params = op->params;
    const mcud_product_s8 what = {params->a_zero_point, params->b_zero_point, params->n};
    const int32_t k = params->k;
    for (int32_t j = 0; j < params->n; j += MCUD_PRODUCT_COLUMNS) {
        const int32_t left = params->n - j;
        const int32_t columns = left < MCUD_PRODUCT_COLUMNS ? left : MCUD_PRODUCT_COLUMNS;
        int32_t sums[MCUD_PRODUCT_COLUMNS] = {0};
        for (int32_t line = 0; line < k;) {
            const int32_t end = matrix != NULL ? k : mcud_run_end(op->in[1], line, k);
            const int8_t *b = mcud_matrix_line(op->in[1], matrix, line, params->n);
            mcud_product_columns(&what, a + line, b + j, end - line, columns, sums);
            line = end;
        }
        mcud_product_finish(sums, columns, params->quant.multiplier, params->quant.shift, params->quant.zero_point,
                            out + j);
    }
}

void mcud_matmul_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_row(op->in[0], row);
        const int8_t *matrix = mcud_matrix(op->in[1], params->batched, params->k, row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            multiply(op, a, matrix, out);
            a += params->k;
            out += params->n;
        }
    }
}
