#include "half_f32.h"

#include <math.h>
#include <string.h>

/* Rounds the fraction from 23 bits to the 10 of float16, half to even. */
static float rounded(float magnitude)
{
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits += 0x0FFFu + ((bits >> 13) & 1u);
    bits &= ~0x1FFFu;
    memcpy(&magnitude, &bits, sizeof bits);
    return magnitude;
}

static float of(float x, float alpha, float beta)
{
    const float magnitude = fabsf(x);
    float result;
    (void)alpha;
    (void)beta;
    if (!(magnitude < 65520.0f)) { /* rounds beyond the largest float16, 65504; or NaN */
        result = magnitude == magnitude ? INFINITY : magnitude;
    } else if (magnitude < 0.00006103515625f) { /* 2^-14 */
        result = (magnitude + 0.5f) - 0.5f; /* subnormal in float16: multiples of 2^-24, the last bit of 0.5 */
    } else {
        result = rounded(magnitude);
    }
    return copysignf(result, x);
}

void mcud_half_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_map_f32(op, first_row, end_row, of);
}
