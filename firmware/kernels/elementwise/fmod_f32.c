#include "fmod_f32.h"

#include <math.h>

static float of(float a, float b)
{
    return fmodf(a, b);
}

void mcud_fmod_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_binary_f32(op, first_row, end_row, of);
}
