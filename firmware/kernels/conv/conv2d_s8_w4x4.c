#include "conv2d_s8_w4x4.h"

#include "mcud_output_tiles.h"

void mcud_conv2d_s8_w4x4(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_winograd(4, op, first_row, end_row);
}
