#include "lstm_f32.h"

#include <math.h>

#include "mcud_clamp_f32.h"

static void step(const mcud_recurrent_f32_params *params, const float *x, float *h, float *c, float *gates)
{
    const int32_t hidden = params->hidden;
    const float *const p = params->peepholes;
    mcud_gates_f32(params, params->input_weights, params->bias, x, params->inputs, 4 * hidden, gates);
    mcud_gates_f32(params, params->recurrent_weights, gates, h, hidden, 4 * hidden, gates);
    for (int32_t k = 0; k < hidden; k++) {
        float input = gates[k];
        float output = gates[hidden + k];
        float forget = gates[2 * hidden + k];
        if (p != NULL) {
            input += p[k] * c[k];
            forget += p[2 * hidden + k] * c[k];
        }
        input = mcud_sigmoid(mcud_gate_f32(params, input));
        forget = mcud_sigmoid(mcud_gate_f32(params, forget));
        const float cell = forget * c[k] + input * tanhf(mcud_gate_f32(params, gates[3 * hidden + k]));
        c[k] = mcud_clamp_f32(cell, -params->cell_clip, params->cell_clip);
        if (p != NULL) {
            output += p[hidden + k] * c[k];
        }
        h[k] = mcud_sigmoid(mcud_gate_f32(params, output)) * tanhf(c[k]);
    }
}

void mcud_lstm_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    mcud_recurrent_f32(op, first_row, step);
}
