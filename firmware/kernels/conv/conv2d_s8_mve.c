#include "conv2d_s8_mve.h"

#include "mcud_pixels_s8.h"

#define MULTIPLY mcud_vector_pixels
#include "conv2d_s8_gathered.h"

void mcud_conv2d_s8_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    convolve_groups(op, first_row, end_row);
}
