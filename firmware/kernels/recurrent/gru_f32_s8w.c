#include "gru_f32_s8w.h"

#include "mcud_gru_cells_f32.h"

static void step(const void *kernel_params, const float *x, float *h, float *c, float *gates)
{
    const mcud_gru_f32_s8w_params *params = kernel_params;
    const mcud_cell_f32 *cell = &params->cell;
    const int32_t hidden = cell->hidden;
    float *const candidate = gates + 2 * hidden;
    const mcud_matrix_s8w input = {params->input_weights, params->input_scale, cell->inputs, 3 * hidden};
    const mcud_matrix_s8w recurrent = {params->recurrent_weights, params->recurrent_scale, hidden, 2 * hidden};
    const mcud_matrix_s8w last = {params->candidate_weights, params->candidate_scale, hidden, hidden};
    mcud_gates_s8w(&input, params->bias, x, gates);
    mcud_gates_s8w(&recurrent, gates, h, gates);
    mcud_gru_gates_f32(cell, gates);
    if (cell->reset_after) {
        mcud_gates_s8w(&last, params->candidate_bias, h, c);
        mcud_gru_reset_after_f32(cell, c, gates);
    } else {
        mcud_gru_reset_before_f32(cell, gates, h, c);
        mcud_gates_s8w(&last, candidate, c, candidate);
    }
    mcud_gru_cells_f32(cell, gates, h);
}

void mcud_gru_f32_s8w(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_gru_f32_s8w_params *params = op->params;
    mcud_recurrent_f32(op, &params->cell, params->initial, first_row, step);
}
