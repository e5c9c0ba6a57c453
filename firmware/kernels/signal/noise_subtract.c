#include "noise_subtract.h"

void mcud_noise_subtract(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_noise_subtract_params *params = op->params;
    const uint32_t *in = mcud_row(op->in[0], first_row);
    const uint32_t *noise = mcud_row(op->in[1], first_row);
    uint32_t *out = mcud_row(op->out, first_row);
    for (int32_t i = 0; i < params->channels; i++) {
        const uint32_t signal = in[i] << params->scale_bits;
        const uint32_t rest = noise[i] > signal ? 0 : (signal - noise[i]) >> params->scale_bits;
        const uint32_t least = (uint32_t)(((uint64_t)in[i] * (uint32_t)params->least) >> params->bits);
        out[i] = rest > least ? rest : least;
    }
}
