#include "gru_f32.h"

#include "mcud_gru_cells_f32.h"

static void step(const void *kernel_params, const float *x, float *h, float *c, float *gates)
{
    const mcud_gru_f32_params *params = kernel_params;
    const mcud_cell_f32 *cell = &params->cell;
    const int32_t hidden = cell->hidden;
    float *const candidate = gates + 2 * hidden;
    mcud_gates_f32(params->input_weights, params->bias, x, cell->inputs, 3 * hidden, gates);
    mcud_gates_f32(params->recurrent_weights, gates, h, hidden, 2 * hidden, gates);
    mcud_gru_gates_f32(cell, gates);
    if (cell->reset_after) {
        mcud_gates_f32(params->candidate_weights, params->candidate_bias, h, hidden, hidden, c);
        mcud_gru_reset_after_f32(cell, c, gates);
    } else {
        mcud_gru_reset_before_f32(cell, gates, h, c);
        mcud_gates_f32(params->candidate_weights, candidate, c, hidden, hidden, candidate);
    }
    mcud_gru_cells_f32(cell, gates, h);
}

void mcud_gru_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_gru_f32_params *params = op->params;
    mcud_recurrent_f32(op, &params->cell, params->initial, first_row, step);
}
