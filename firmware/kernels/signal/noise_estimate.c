#include "noise_estimate.h"

void mcud_noise_estimate(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_noise_estimate_params *params = op->params;
    const uint32_t *in = mcud_row(op->in[0], first_row);
    const uint32_t *before = mcud_row(op->in[1], first_row);
    uint32_t *out = mcud_row(op->out, first_row);
    for (int32_t i = 0; i < params->channels; i++) {
        const uint32_t newest = (uint32_t)(i % 2 == 0 ? params->even_newest : params->odd_newest);
        const uint32_t oldest = (uint32_t)(i % 2 == 0 ? params->even_oldest : params->odd_oldest);
        const uint32_t signal = in[i] << params->scale_bits;
        const uint64_t sum = (uint64_t)signal * newest + (uint64_t)before[i] * oldest;
        const uint32_t estimate = (uint32_t)(sum >> params->bits);
        out[i] = params->clamped != 0 && estimate > signal ? signal : estimate;
    }
}
