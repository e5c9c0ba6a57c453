#include "overlap_add_s16.h"

#include <string.h>

void mcud_overlap_add_s16(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_overlap_add_s16_params *params = op->params;
    const int32_t rest = params->size - params->step;
    const int16_t *in = mcud_row(op->in[0], first_row);
    int16_t *state = mcud_row(op->in[1], first_row);
    int16_t *out = mcud_row(op->out, first_row);
    for (int32_t frame = 0; frame < params->frames; frame++) {
        for (int32_t i = 0; i < params->size; i++) {
            const int32_t sum = state[i] + in[i];
            state[i] = (int16_t)(sum < INT16_MIN ? INT16_MIN : (sum > INT16_MAX ? INT16_MAX : sum));
        }
        memcpy(out, state, (size_t)params->step * sizeof *out);
        memmove(state, state + params->step, (size_t)rest * sizeof *state);
        memset(state + rest, 0, (size_t)params->step * sizeof *state);
        in += params->size;
        out += params->step;
    }
}
