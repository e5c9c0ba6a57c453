#include "square_sum_f32.h"

#include "mcud_simd_f32.h"

enum { BLOCK = 64 };

void mcud_square_sum_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_square_sum_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        float total = 0.0f;
        for (int32_t rest = params->row_elements; rest > 0; rest -= BLOCK) {
            float sum = 0.0f;
            for (const float *end = in + (rest < BLOCK ? rest : BLOCK); in < end; in++) {
                sum = mcud_mac_f32(*in, *in, sum);
            }
            total += sum;
        }
        *out = total;
    }
}
