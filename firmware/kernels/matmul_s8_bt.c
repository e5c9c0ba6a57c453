#include "matmul_s8_bt.h"

#include <stddef.h>

#include "mcud_quant.h"

/* Line `index` of the second matrix; `matrix` is where it begins, or NULL where its rows lie in several blocks. */
static const int8_t *line_of(const mcud_op *op, const int8_t *matrix, int32_t index, int32_t pitch)
{
    return matrix != NULL ? matrix + index * pitch : mcud_row(op->in[1], index);
}

/* The second matrix for a row of the output, or NULL where its rows lie in several blocks. */
static const int8_t *matrix_of(const mcud_op *op, int32_t row)
{
    const mcud_matmul_s8_bt_params *params = op->params;
    if (params->batched != 0) {
        return mcud_row(op->in[1], row);
    }
    return (int32_t)op->in[1]->block_rows >= params->n ? mcud_row(op->in[1], 0) : NULL;
}

void mcud_matmul_s8_bt(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_bt_params *params = op->params;
    const int32_t k = params->k;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_row(op->in[0], row);
        const int8_t *matrix = matrix_of(op, row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            for (int32_t j = 0; j < params->n; j++) {
                const int8_t *b = line_of(op, matrix, j, k);
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
