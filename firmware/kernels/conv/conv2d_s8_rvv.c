#include "conv2d_s8_rvv.h"

#include "mcud_lanes_s8.h"

#define MULTIPLY mcud_lanes_pixels
#include "conv2d_s8_gathered.h"

void mcud_conv2d_s8_rvv(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    convolve_groups(op, first_row, end_row);
}
