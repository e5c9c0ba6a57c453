#include "signal_energy.h"

void mcud_signal_energy(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_signal_energy_params *params = op->params;
    const int16_t *in = mcud_row(op->in[0], first_row);
    uint32_t *out = mcud_row(op->out, first_row);
    for (int32_t i = 0; i < params->points; i++) {
        const uint32_t real = (uint32_t)(in[2 * i] * in[2 * i]);
        const uint32_t imaginary = (uint32_t)(in[2 * i + 1] * in[2 * i + 1]);
        out[i] = i >= params->first && i < params->end ? real + imaginary : 0;
    }
}
