#include "div_f32.h"

static float divide(float a, float b)
{
    return a / b;
}

void mcud_div_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_binary_f32(op, first_row, end_row, divide);
}
