#include "softmax_s8.h"

#include "mcud_softmax.h"

/* One value after the other. */
static void softmax_values(const mcud_softmax_group *softmax, const int8_t *in, int8_t *out)
{
    const int32_t step = softmax->step;
    const int32_t extent = softmax->count * step;
    const uint32_t *table = softmax->table;
    int32_t max = in[0];
    for (int32_t i = step; i < extent; i += step) {
        max = in[i] > max ? in[i] : max;
    }
    uint32_t sum = 0;
    for (int32_t i = 0; i < extent; i += step) {
        sum += table[max - in[i]];
    }
    const uint64_t reciprocal = mcud_reciprocal(sum);
    const int32_t multiplier = softmax->multiplier;
    const int32_t shift = softmax->shift;
    const int32_t zero_point = softmax->zero_point;
    for (int32_t i = 0; i < extent; i += step) {
        const int32_t probability = mcud_probability(table[max - in[i]], reciprocal);
        out[i] = (int8_t)mcud_clamp(zero_point + mcud_scale(probability, multiplier, shift), -128, 127);
    }
}

void mcud_softmax_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_softmax_s8_params *params = op->params;
    const mcud_softmax_group softmax = {params->table, params->count, params->step,
                                        params->quant.multiplier, params->quant.shift, params->quant.zero_point};
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *in = mcud_row(op->in[0], row);
        int8_t *out = mcud_row(op->out, row);
        for (int32_t group = 0; group < params->groups; group++) {
            if (!mcud_softmax_run(&softmax, in, out)) {
                softmax_values(&softmax, in, out);
            }
            in += params->group_step;
            out += params->group_step;
        }
    }
}
