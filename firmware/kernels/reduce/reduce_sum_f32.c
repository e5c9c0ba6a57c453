#include "reduce_sum_f32.h"

static float add(float result, float x)
{
    return result + x;
}

void mcud_reduce_sum_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const float nothing = 0.0f;
    mcud_reduce_f32(op, first_row, end_row, &nothing, add);
}
