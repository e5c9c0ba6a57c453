#include "lstm_f32.h"

#include "mcud_lstm_cells_f32.h"

static void step(const void *kernel_params, const float *x, float *h, float *c, float *gates)
{
    const mcud_lstm_f32_params *params = kernel_params;
    const int32_t hidden = params->cell.hidden;
    mcud_gates_f32(params->input_weights, params->bias, x, params->cell.inputs, 4 * hidden, gates);
    mcud_gates_f32(params->recurrent_weights, gates, h, hidden, 4 * hidden, gates);
    mcud_lstm_cells_f32(&params->cell, params->peepholes, gates, h, c);
}

void mcud_lstm_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_lstm_f32_params *params = op->params;
    mcud_recurrent_f32(op, &params->cell, params->initial, first_row, step);
}
