#include "signal_shift.h"

void mcud_signal_shift(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_signal_shift_params *params = op->params;
    const int16_t *in = mcud_row(op->in[0], first_row);
    const int32_t bits = *(const int32_t *)mcud_row(op->in[1], first_row) & 15;
    int16_t *out = mcud_row(op->out, first_row);
    for (int32_t i = 0; i < params->count; i++) {
        out[i] = (int16_t)(uint16_t)((uint32_t)in[i] << bits);
    }
}
