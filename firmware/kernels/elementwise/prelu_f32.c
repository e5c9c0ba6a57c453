#include "prelu_f32.h"

static float of(float a, float b)
{
    return a < 0.0f ? a * b : a;
}

void mcud_prelu_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_binary_f32(op, first_row, end_row, of);
}
