#include "matmul_f32.h"

#include <string.h>

#include "mcud_matrix.h"
#include "mcud_simd_f32.h"

/* out[n] += a[values] . b[values][n]; lines of b are `pitch` values apart */
static void add_lines(const float *a, const float *b, int32_t pitch, int32_t values, int32_t n, float *out)
{
    int32_t j = 0;
    for (; j + 8 <= n; j += 8) {
        mcud_add_lines_8_f32(a, b + j, pitch, values, out + j);
    }
    for (; j < n; j++) {
        const float *value = b + j;
        float sum = out[j];
        for (int32_t i = 0; i < values; i++, value += pitch) {
            sum = mcud_mac_f32(a[i], *value, sum);
        }
        out[j] = sum;
    }
}

static void multiply(const mcud_matmul_f32_params *params, const float *a, mcud_matrix b, float *out)
{
    memset(out, 0, (size_t)params->n * sizeof *out);
    const int32_t pitch = b.pitch / (int32_t)sizeof *a;
    for (int32_t i = 0; i < params->k;) {
        const int32_t end = mcud_matrix_run_end(&b, i, params->k);
        add_lines(a + i, mcud_matrix_line(&b, i), pitch, end - i, params->n, out);
        i = end;
    }
}

void mcud_matmul_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_f32_params *params = op->params;
    const int32_t matrices = params->batched != 0 ? 0 : params->m; /* in a row of b */
    const int32_t line_bytes = params->n * (int32_t)sizeof(float);
    for (int32_t row = first_row; row < end_row; row++) {
        const float *a = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params->m; i++) {
            const mcud_matrix b = mcud_matrix_of(op->in[1], matrices != 0 ? i : row, matrices, params->k, line_bytes);
            multiply(params, a, b, out);
            a += params->k;
            out += params->n;
        }
    }
}
