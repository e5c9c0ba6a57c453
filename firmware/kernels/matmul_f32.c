#include "matmul_f32.h"

#include <stddef.h>

/* Line `index` of the second matrix; `matrix` is where it begins, or NULL where its rows lie in several blocks. */
static const float *line_of(const mcud_op *op, const float *matrix, int32_t index, int32_t pitch)
{
    return matrix != NULL ? matrix + index * pitch : mcud_row(op->in[1], index);
}

/* The second matrix for a row of the output, or NULL where its rows lie in several blocks. */
static const float *matrix_of(const mcud_op *op, int32_t row)
{
    const mcud_matmul_f32_params *params = op->params;
    if (params->batched != 0) {
        return mcud_row(op->in[1], row);
    }
    return (int32_t)op->in[1]->block_rows >= params->k ? mcud_row(op->in[1], 0) : NULL;
}

static void multiply(const mcud_op *op, const float *a, const float *matrix, float *out)
{
    const mcud_matmul_f32_params *params = op->params;
    const int32_t n = params->n;
    for (int32_t j = 0; j < n; j++) {
        out[j] = 0.0f;
    }
    for (int32_t i = 0; i < params->k; i++) {
        const float value = a[i];
        const float *b = line_of(op, matrix, i, n);
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
        const float *matrix = matrix_of(op, row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            multiply(op, a, matrix, out);
            a += params->k;
            out += params->n;
        }
    }
}
