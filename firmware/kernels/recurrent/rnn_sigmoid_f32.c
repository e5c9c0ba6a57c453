#include "rnn_sigmoid_f32.h"

#include "mcud_exponential_f32.h"

static void step(const void *params, const float *x, float *h, float *c, float *gates)
{
    (void)c;
    mcud_plain_step_f32(params, x, h, gates, mcud_sigmoidf);
}

void mcud_rnn_sigmoid_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_recurrent_f32_params *params = op->params;
    mcud_recurrent_f32(op, &params->cell, params->initial, first_row, step);
}
