/* Quantisation of float values, for quantise, division and the ties of a linear resize. It uses only + - * / of IEEE
 * single precision, so all machines give the same bits.
 */
#ifndef MCUD_QUANT_F32_H
#define MCUD_QUANT_F32_H

#include <stdint.h>

/* clamp(zero_point + rint(value / scale), low, high), half to even; low for a NaN.
 * scale > 0, and -128 <= low <= high <= 127. */
static inline int32_t mcud_quantized(float value, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    /* Adding 1.5 * 2^23 leaves no bit for a fraction: the addition rounds, half to even. */
    const float rounder = 12582912.0f;
    const float least = (float)(low - zero_point);
    const float most = (float)(high - zero_point);
    const float steps = value / scale;
    const float inside = !(steps > least) ? least : (steps < most ? steps : most);
    return zero_point + (int32_t)((inside + rounder) - rounder);
}

#endif
