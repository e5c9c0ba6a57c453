#include "signal_headroom.h"

void mcud_signal_headroom(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_signal_headroom_params *params = op->params;
    const int16_t *in = mcud_row(op->in[0], first_row);
    int32_t *out = mcud_row(op->out, first_row);
    int32_t largest = 0;
    for (int32_t i = 0; i < params->count; i++) {
        const int32_t value = in[i];
        if (value > largest) {
            largest = value;
        } else if (-value > largest) {
            largest = value == INT16_MIN ? value : -value;
        }
    }
    int32_t bits = 0;
    while (largest > 0 && bits < 15 && (largest << bits) < (1 << 14)) {
        bits++;
    }
    *out = bits;
}
