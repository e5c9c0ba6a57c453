#include "matmul_s8.h"

#include "mcud_matrix.h"
#include "mcud_product_s8.h"

/* One line of the product, a block of columns at a time. */
static void multiply(const mcud_matmul_s8_params *params, const int8_t *a, mcud_matrix b, int8_t *out)
{
    const mcud_product_s8 what = {params->a_zero_point, params->b_zero_point, b.pitch};
    const int32_t k = params->k;
    for (int32_t j = 0; j < params->n; j += MCUD_PRODUCT_COLUMNS) {
        const int32_t left = params->n - j;
        const int32_t columns = left < MCUD_PRODUCT_COLUMNS ? left : MCUD_PRODUCT_COLUMNS;
        int32_t sums[MCUD_PRODUCT_COLUMNS] = {0};
        for (int32_t line = 0; line < k;) {
            const int32_t end = mcud_matrix_run_end(&b, line, k);
            const int8_t *first = mcud_matrix_line(&b, line);
            mcud_product_columns(&what, a + line, first + j, end - line, columns, sums);
            line = end;
        }
        mcud_product_finish(sums, columns, params->quant.multiplier, params->quant.shift, params->quant.zero_point,
                            out + j);
    }
}

void mcud_matmul_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_params *params = op->params;
    const int32_t matrices = params->batched != 0 ? 0 : params->m; /* in a row of b */
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            const mcud_matrix b = mcud_matrix_of(op->in[1], matrices != 0 ? i : row, matrices, params->k, params->n);
            multiply(params, a, b, out);
            a += params->k;
            out += params->n;
        }
    }
}
