#include "equal_f32.h"

static float of(float a, float b)
{
    return a == b ? 1.0f : 0.0f;
}

void mcud_equal_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_binary_f32(op, first_row, end_row, of);
}
