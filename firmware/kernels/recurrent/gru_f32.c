#include "gru_f32.h"

#include <math.h>

static void step(const mcud_recurrent_f32_params *params, const float *x, float *h, float *c, float *gates)
{
    const int32_t hidden = params->hidden;
    float *const candidate = gates + 2 * hidden;
    mcud_gates_f32(params, params->input_weights, params->bias, x, params->inputs, 3 * hidden, gates);
    mcud_gates_f32(params, params->recurrent_weights, gates, h, hidden, 2 * hidden, gates);
    for (int32_t k = 0; k < 2 * hidden; k++) {
        gates[k] = mcud_sigmoid(mcud_gate_f32(params, gates[k]));
    }
    const float *const reset = gates + hidden;
    if (params->reset_after) {
        mcud_gates_f32(params, params->candidate_weights, params->candidate_bias, h, hidden, hidden, c);
        for (int32_t k = 0; k < hidden; k++) {
            candidate[k] += reset[k] * c[k];
        }
    } else {
        for (int32_t k = 0; k < hidden; k++) {
            c[k] = reset[k] * h[k];
        }
        mcud_gates_f32(params, params->candidate_weights, candidate, c, hidden, hidden, candidate);
    }
    for (int32_t k = 0; k < hidden; k++) {
        h[k] = (1.0f - gates[k]) * tanhf(mcud_gate_f32(params, candidate[k])) + gates[k] * h[k];
    }
}

void mcud_gru_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    mcud_recurrent_f32(op, first_row, step);
}
