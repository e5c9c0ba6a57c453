#include "gelu_tanh_f32.h"

#include "mcud_exponential_f32.h"

static float of(float x, float alpha, float beta)
{
    (void)alpha;
    (void)beta;
    return 0.5f * x * (1.0f + mcud_tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

void mcud_gelu_tanh_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_map_f32(op, first_row, end_row, of);
}
