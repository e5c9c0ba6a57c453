#include "min_f32.h"

static float of(float a, float b)
{
    return b >= a ? a : (a == a ? b : a); /* a NaN on either side stays */
}

void mcud_min_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_binary_f32(op, first_row, end_row, of);
}
