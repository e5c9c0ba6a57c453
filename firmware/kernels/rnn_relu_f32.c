#include "rnn_relu_f32.h"

#include <math.h>

static void step(const mcud_recurrent_f32_params *params, const float *x, float *h, float *c, float *gates)
{
    (void)c;
    const int32_t hidden = params->hidden;
    mcud_gates_f32(params, params->input_weights, params->bias, x, params->inputs, hidden, gates);
    mcud_gates_f32(params, params->recurrent_weights, gates, h, hidden, hidden, gates);
    for (int32_t k = 0; k < hidden; k++) {
        h[k] = fmaxf(gates[k], 0.0f);
    }
}

void mcud_rnn_relu_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    mcud_recurrent_f32(op, first_row, step);
}
