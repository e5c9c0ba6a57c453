#include "softplus_f32.h"

#include <math.h>

#include "mcud_exponential_f32.h"

static float of(float x, float alpha, float beta)
{
    (void)alpha;
    (void)beta;
    return fmaxf(x, 0.0f) + log1pf(mcud_expf(-fabsf(x)));
}

void mcud_softplus_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_map_f32(op, first_row, end_row, of);
}
