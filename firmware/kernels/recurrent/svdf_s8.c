#include "svdf_s8.h"

#include "mcud_quant.h"

/* Appends `newest` to the state of a filter, without its oldest value; returns sum + state * weights. */
static int32_t filter(int8_t *state, int8_t newest, const int8_t *weights, int32_t memory, int32_t sum)
{
    for (const int8_t *last = state + memory - 1; state < last; state++) {
        const int8_t value = state[1];
        state[0] = value;
        sum += value * *weights++;
    }
    *state = newest;
    return sum + newest * *weights;
}

void mcud_svdf_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_svdf_s8_params *params = op->params;
    const int32_t memory = params->memory;
    const int8_t *newest = mcud_row(op->in[0], first_row);
    int8_t *state = mcud_row(op->in[1], first_row);
    int8_t *out = mcud_row(op->out, first_row);
    const int8_t *weights = params->weights;
    for (int32_t unit = 0; unit < params->units; unit++) {
        int32_t sum = params->bias[unit];
        for (int32_t i = 0; i < params->rank; i++) {
            sum = filter(state, *newest++, weights, memory, sum);
            state += memory;
            weights += memory;
        }
        const int32_t scaled = mcud_scale(sum, params->quant.multiplier, params->quant.shift);
        out[unit] = (int8_t)mcud_clamp(params->quant.zero_point + scaled, -128, 127);
    }
}
