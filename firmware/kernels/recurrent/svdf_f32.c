#include "svdf_f32.h"

/* Appends `newest` to the state of a filter, without its oldest value; returns sum + state * weights. */
static float filter(float *state, float newest, const float *weights, int32_t memory, float sum)
{
    for (const float *last = state + memory - 1; state < last; state++) {
        const float value = state[1];
        state[0] = value;
        sum += value * *weights++;
    }
    *state = newest;
    return sum + newest * *weights;
}

void mcud_svdf_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_svdf_f32_params *params = op->params;
    const int32_t memory = params->memory;
    const float *newest = mcud_row(op->in[0], first_row);
    float *state = mcud_row(op->in[1], first_row);
    float *out = mcud_row(op->out, first_row);
    const float *weights = params->weights;
    for (int32_t unit = 0; unit < params->units; unit++) {
        float sum = params->bias[unit];
        for (int32_t i = 0; i < params->rank; i++) {
            sum = filter(state, *newest++, weights, memory, sum);
            state += memory;
            weights += memory;
        }
        out[unit] = sum;
    }
}
