#include "signal_stack.h"

#include <string.h>

void mcud_signal_stack(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_signal_stack_params *params = op->params;
    const size_t bytes = (size_t)params->frame_bytes;
    const uint8_t *newest = mcud_row(op->in[0], first_row);
    const uint8_t *from = mcud_row(op->in[1], first_row);
    const int8_t *flags = mcud_row(op->in[2], first_row);
    uint8_t *to = mcud_row(op->out, first_row);
    const int first_run = flags[1];
    for (int32_t frame = 1; frame < params->frames; frame++) {
        from += bytes;
        memcpy(to, first_run != 0 ? newest : from, bytes);
        to += bytes;
    }
    memcpy(to, newest, bytes);
}
