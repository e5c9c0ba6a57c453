#include "run_count.h"

void mcud_run_count(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_run_count_params *params = op->params;
    int32_t *count = mcud_row(op->in[0], first_row);
    int8_t *out = mcud_row(op->out, first_row);
    out[0] = *count >= params->first && (*count - params->first) % params->period == 0;
    out[1] = *count == 0;
    (*count)++;
    if (*count > params->first + params->period) {
        *count -= params->period;
    }
}
