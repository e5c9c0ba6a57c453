#include "dwconv2d_f32_trained.h"

#include "mcud_depthwise_f32.h"

void mcud_dwconv2d_f32_trained(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_trained_params *params = op->params;
    const mcud_depthwise_f32 of = {
        .weights = mcud_row(op->in[1], 0),
        .bias = mcud_row(op->in[2], 0),
        .dims = &params->dims,
        .window = &params->window,
        .act = &params->act,
        .multiplier = params->multiplier,
    };
    mcud_depthwise_rows_f32(op, &of, first_row, end_row);
}
