#include "sigmoid_s16.h"

#include "mcud_sigmoid_s16.h"

void mcud_sigmoid_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_sigmoid_s16_params params = *(const mcud_sigmoid_s16_params *)op->params;
    const int32_t half = params.shift > 0 ? (int32_t)(1u << (params.shift - 1)) : 0;
    for (int32_t row = first_row; row < end_row; row++) {
        const int16_t *in = mcud_row(op->in[0], row);
        int16_t *out = mcud_row(op->out, row);
        for (int32_t i = 0; i < params.row_elements; i++) {
            const int32_t value = (in[i] * params.multiplier + half) >> params.shift;
            out[i] = (int16_t)(params.tangent ? mcud_tanh_by_table(params.table, value)
                                               : mcud_logistic_by_table(params.table, value));
        }
    }
}
