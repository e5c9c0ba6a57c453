/* The cells of a GRU: from the sums of the gates (update, reset, candidate) to the next h. */
#ifndef MCUD_GRU_CELLS_F32_H
#define MCUD_GRU_CELLS_F32_H

#include "mcud_exponential_f32.h"
#include "mcud_recurrent_f32.h"

/* Turns the sums of the update and the reset gate into their values, in place. */
static inline void mcud_gru_gates_f32(const mcud_cell_f32 *cell, float *gates)
{
    for (int32_t k = 0; k < 2 * cell->hidden; k++) {
        gates[k] = mcud_sigmoidf(mcud_gate_f32(cell, gates[k]));
    }
}

/* Adds the reset gate times the product with h to the sum of the candidate (linear_before_reset). */
static inline void mcud_gru_reset_after_f32(const mcud_cell_f32 *cell, const float *product, float *gates)
{
    const int32_t hidden = cell->hidden;
    for (int32_t k = 0; k < hidden; k++) {
        gates[2 * hidden + k] += gates[hidden + k] * product[k];
    }
}

/* Writes to c the reset gate times h, from which the candidate's product is computed. */
static inline void mcud_gru_reset_before_f32(const mcud_cell_f32 *cell, const float *gates, const float *h, float *c)
{
    for (int32_t k = 0; k < cell->hidden; k++) {
        c[k] = gates[cell->hidden + k] * h[k];
    }
}

/* Replaces h by its next value. */
static inline void mcud_gru_cells_f32(const mcud_cell_f32 *cell, const float *gates, float *h)
{
    const float *const candidate = gates + 2 * cell->hidden;
    for (int32_t k = 0; k < cell->hidden; k++) {
        h[k] = (1.0f - gates[k]) * mcud_tanhf(mcud_gate_f32(cell, candidate[k])) + gates[k] * h[k];
    }
}

#endif
