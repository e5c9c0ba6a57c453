#include "matmul_f32_bt.h"

#include "mcud_matrix.h"
#include "mcud_unpacked_f32.h"

static void multiply(const mcud_matmul_f32_bt_params *params, const float *a, mcud_matrix b, float *out)
{
    const int32_t pitch = b.pitch / (int32_t)sizeof *a;
    for (int32_t j = 0; j < params->n;) {
        const int32_t end = mcud_matrix_run_end(&b, j, params->n);
        const float *line = mcud_matrix_line(&b, j);
        for (; j + 4 <= end; j += 4, line += 4 * pitch) {
            out[j] = out[j + 1] = out[j + 2] = out[j + 3] = 0.0f;
            mcud_add_unpacked_1x4_f32(a, line, pitch, params->k, out + j);
        }
        for (; j < end; j++, line += pitch) {
            float sum = 0.0f;
            for (int32_t l = 0; l < params->k; l++) {
                sum = mcud_mac_f32(a[l], line[l], sum);
            }
            out[j] = sum;
        }
    }
}

void mcud_matmul_f32_bt(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_f32_bt_params *params = op->params;
    const int32_t matrices = params->batched != 0 ? 0 : params->m; /* in a row of b */
    const int32_t line_bytes = params->k * (int32_t)sizeof(float);
    for (int32_t row = first_row; row < end_row; row++) {
        const float *a = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            const mcud_matrix b = mcud_matrix_of(op->in[1], matrices != 0 ? i : row, matrices, params->n, line_bytes);
            multiply(params, a, b, out);
            a += params->k;
            out += params->n;
        }
    }
}
