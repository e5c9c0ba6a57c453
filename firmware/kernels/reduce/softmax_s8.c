#include "softmax_s8.h"

#include "mcud_softmax.h"

static uint32_t sum_of(const mcud_softmax_group *softmax, const int8_t *x, int32_t max)
{
    const int32_t step = softmax->step;
    const uint32_t *table = softmax->table;
    uint32_t sum = 0;
    int32_t left = softmax->count;
    for (; left >= 2; left -= 2, x += 2 * step) {
        sum += table[max - x[0]];
        sum += table[max - x[step]];
    }
    return left > 0 ? sum + table[max - x[0]] : sum;
}

/* Computes values in sequence. */
static void softmax_values(const mcud_softmax_group *softmax, const int8_t *in, int8_t *out)
{
    const int32_t step = softmax->step;
    const uint32_t *table = softmax->table;
    const int32_t max = mcud_largest(in, softmax->count, step);
    const uint64_t reciprocal = mcud_reciprocal(sum_of(softmax, in, max), table[0]);
    const int32_t multiplier = softmax->multiplier;
    const int32_t shift = softmax->shift - 32;
    const int32_t half = (int32_t)1 << (shift - 1);
    const int32_t zero_point = softmax->zero_point;
    for (int32_t left = softmax->count; left > 0; left--, in += step, out += step) {
        const int32_t probability = mcud_probability(table[max - *in], reciprocal);
        const int32_t high = (int32_t)(((int64_t)probability * multiplier) >> 32);
        *out = mcud_saturate_s8(zero_point + ((high + half) >> shift));
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
