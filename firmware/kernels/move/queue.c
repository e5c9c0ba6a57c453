#include "queue.h"

#include <string.h>

void mcud_queue(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_queue_params *params = op->params;
    const size_t newest = (size_t)params->newest;
    const uint8_t *from = mcud_row(op->in[1], first_row);
    uint8_t *to = mcud_row(op->out, first_row);
    size_t left = (size_t)params->kept;
    while (left > 0) { /* by pieces: a piece does not overlap its source, also in the same memory */
        const size_t piece = left < newest ? left : newest;
        from += newest;
        memcpy(to, from, piece);
        to += piece;
        left -= piece;
    }
    memcpy(to, mcud_row(op->in[0], first_row), newest);
}
