#include "swish_f32.h"

#include "mcud_exponential_f32.h"

static float of(float x, float alpha, float beta)
{
    (void)beta;
    return x / (1.0f + mcud_expf(-alpha * x));
}

void mcud_swish_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_map_f32(op, first_row, end_row, of);
}
