#include "lstm_f32_s8w.h"

#include "mcud_lstm_cells_f32.h"

static void step(const void *kernel_params, const float *x, float *h, float *c, float *gates)
{
    const mcud_lstm_f32_s8w_params *params = kernel_params;
    const int32_t hidden = params->cell.hidden;
    const mcud_matrix_s8w input = {params->input_weights, params->input_scale, params->cell.inputs, 4 * hidden};
    const mcud_matrix_s8w recurrent = {params->recurrent_weights, params->recurrent_scale, hidden, 4 * hidden};
    mcud_gates_s8w(&input, params->bias, x, gates);
    mcud_gates_s8w(&recurrent, gates, h, gates);
    mcud_lstm_cells_f32(&params->cell, params->peepholes, gates, h, c);
}

void mcud_lstm_f32_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_lstm_f32_s8w_params *params = op->params;
    mcud_recurrent_f32(op, &params->cell, params->initial, first_row, step);
}
