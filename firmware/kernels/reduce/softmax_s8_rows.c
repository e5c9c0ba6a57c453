#include "softmax_s8_rows.h"

#include "mcud_softmax.h"

static int32_t value_at(const mcud_tensor *tensor, int32_t row, int32_t element)
{
    const int8_t *values = mcud_row(tensor, row);
    return values[element];
}

void mcud_softmax_s8_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_softmax_s8_rows_params *params = op->params;
    const mcud_tensor *in = op->in[0];
    for (int32_t element = 0; element < params->row_elements; element++) {
        int32_t max = -128;
        for (int32_t row = 0; row < params->rows; row++) {
            const int32_t value = value_at(in, row, element);
            max = value > max ? value : max;
        }
        uint32_t sum = 0;
        for (int32_t row = 0; row < params->rows; row++) {
            sum += params->table[max - value_at(in, row, element)];
        }
        const uint64_t reciprocal = mcud_reciprocal(sum, params->table[0]);
        for (int32_t row = first_row; row < end_row; row++) {
            const uint32_t exponential = params->table[max - value_at(in, row, element)];
            const int32_t probability = mcud_probability(exponential, reciprocal);
            const int32_t scaled = mcud_scale(probability, params->quant.multiplier, params->quant.shift);
            int8_t *out = mcud_row(op->out, row);
            out[element] = (int8_t)mcud_clamp(params->quant.zero_point + scaled, -128, 127);
        }
    }
}
