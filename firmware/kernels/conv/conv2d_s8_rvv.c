#include "conv2d_s8_rvv.h"

#include "mcud_lanes_s8.h"

static inline void multiply(const mcud_vector_channels *to, const int8_t *patch, int32_t bytes, int32_t count, int8_t *y)
{
    const int8_t *const x[3] = {patch, patch + bytes, patch + 2 * bytes};
    mcud_lanes_pixels(to, x, count, y);
}

#define MULTIPLY multiply
#include "conv2d_s8_gathered.h"

void mcud_conv2d_s8_rvv(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    convolve_groups(op, first_row, end_row);
}
