#include "matmul_s8_bt.h"

#include "mcud_matrix.h"
#include "mcud_product_s8.h"

/* One line of the product, a block of lines of b at a time. */
static void multiply(const mcud_matmul_s8_bt_params *params, const int8_t *a, mcud_matrix b, int8_t *out)
{
    const mcud_product_s8 what = {params->a_zero_point, params->b_zero_point, 0};
    const int32_t n = params->n;
    for (int32_t j = 0; j < n; j += MCUD_PRODUCT_LINES) {
        const int32_t count = n - j < MCUD_PRODUCT_LINES ? n - j : MCUD_PRODUCT_LINES;
        const int8_t *lines[MCUD_PRODUCT_LINES];
        const int32_t end = mcud_matrix_run_end(&b, j, j + count);
        const int8_t *line = mcud_matrix_line(&b, j);
        for (int32_t i = 0; i < MCUD_PRODUCT_LINES; i++) { /* the last line stands in for missing ones */
            lines[i] = line;
            if (j + i + 1 < end) {
                line += b.pitch;
            } else if (i + 1 < count) {
                line = mcud_matrix_line(&b, j + i + 1);
            }
        }
        int32_t sums[MCUD_PRODUCT_LINES] = {0};
        mcud_product_lines(&what, a, lines, params->k, sums);
        mcud_product_finish(sums, count, params->quant.multiplier, params->quant.shift, params->quant.zero_point,
                            out + j);
    }
}

void mcud_matmul_s8_bt(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_bt_params *params = op->params;
    const int32_t matrices = params->batched != 0 ? 0 : params->m; /* in a row of b */
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            const mcud_matrix b = mcud_matrix_of(op->in[1], matrices != 0 ? i : row, matrices, params->n, params->k);
            multiply(params, a, b, out);
            a += params->k;
            out += params->n;
        }
    }
}
