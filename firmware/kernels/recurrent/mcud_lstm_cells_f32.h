/* The cells of an LSTM: from the sums of the gates to the next h and c. */
#ifndef MCUD_LSTM_CELLS_F32_H
#define MCUD_LSTM_CELLS_F32_H

#include "mcud_clamp_f32.h"
#include "mcud_exponential_f32.h"
#include "mcud_recurrent_f32.h"

/* Replaces h and c by their next values; `gates` has sums of the gates i, o, f and the candidate; `peepholes` may be
 * NULL. */
static inline void mcud_lstm_cells_f32(const mcud_cell_f32 *cell, const float *peepholes, const float *gates, float *h,
                                       float *c)
{
    const int32_t hidden = cell->hidden;
    for (int32_t k = 0; k < hidden; k++) {
        float input = gates[k];
        float output = gates[hidden + k];
        float forget = gates[2 * hidden + k];
        if (peepholes != NULL) {
            input += peepholes[k] * c[k];
            forget += peepholes[2 * hidden + k] * c[k];
        }
        input = mcud_sigmoidf(mcud_gate_f32(cell, input));
        forget = mcud_sigmoidf(mcud_gate_f32(cell, forget));
        const float next = forget * c[k] + input * mcud_tanhf(mcud_gate_f32(cell, gates[3 * hidden + k]));
        c[k] = mcud_clamp_f32(next, -cell->cell_clip, cell->cell_clip);
        if (peepholes != NULL) {
            output += peepholes[hidden + k] * c[k];
        }
        h[k] = mcud_sigmoidf(mcud_gate_f32(cell, output)) * mcud_tanhf(c[k]);
    }
}

#endif
