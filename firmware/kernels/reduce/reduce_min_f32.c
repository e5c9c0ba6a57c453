#include "reduce_min_f32.h"

static float smaller(float result, float x)
{
    return x < result ? x : result;
}

void mcud_reduce_min_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_reduce_f32(op, first_row, end_row, NULL, smaller);
}
