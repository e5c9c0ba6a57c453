#include "hard_sigmoid_f32.h"

static float of(float x, float alpha, float beta)
{
    const float line = alpha * x + beta;
    return line < 0.0f ? 0.0f : (line > 1.0f ? 1.0f : line);
}

void mcud_hard_sigmoid_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_map_f32(op, first_row, end_row, of);
}
