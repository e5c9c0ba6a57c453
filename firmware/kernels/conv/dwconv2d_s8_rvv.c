#include "dwconv2d_s8_rvv.h"

#include "mcud_lanes_s8.h"

static inline void multiply(const mcud_dwconv2d_s8_rvv_params *params, const mcud_windows_alike *windows, int8_t *y)
{
    const mcud_lanes_depthwise by = {
        .record = params->packed_weights,
        .lanes = params->pixels * params->dims.channels,
        .finish = {params->quant.zero_point, params->quant.left_shift, 0},
    };
    mcud_lanes_taps(windows, &by, y);
}

#define MULTIPLY multiply
#include "dwconv2d_s8_taps.h"

void mcud_dwconv2d_s8_rvv(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    multiply_windows(op, first_row, end_row);
}
