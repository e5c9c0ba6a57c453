#include "dense_f32.h"

#include "mcud_pixel_f32.h"

void mcud_dense_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)first_row; /* there is one row */
    (void)end_row;
    const mcud_dense_f32_params *params = op->params;
    const float *x = mcud_first_row(op->in[0]);
    float *y = mcud_first_row(op->out);
    if (params->channels != 1) {
        mcud_pixel_f32(params, x, y);
        return;
    }
    const float *w = params->weights;
    float sum = *params->bias;
    for (const float *const end = x + params->depth; x != end; x++, w++) {
        sum = mcud_mac_f32(*x, *w, sum);
    }
    *y = mcud_clamp_f32(sum, params->act.min, params->act.max);
}
