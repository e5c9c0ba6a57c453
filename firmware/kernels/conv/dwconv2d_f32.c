#include "dwconv2d_f32.h"

#include "mcud_depthwise_f32.h"

void mcud_dwconv2d_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_params *params = op->params;
    const mcud_depthwise_f32 of = {
        .weights = params->weights,
        .bias = params->bias,
        .dims = &params->dims,
        .window = &params->window,
        .act = &params->act,
        .multiplier = params->multiplier,
    };
    mcud_depthwise_rows_f32(op, &of, first_row, end_row);
}
