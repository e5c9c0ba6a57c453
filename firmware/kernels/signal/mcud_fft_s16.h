/* The numbers of a Fourier transform: int16_t in fixed point with 15 fractional bits. Every stage divides by its
 * radix; products round half up.
 */
#ifndef MCUD_FFT_S16_H
#define MCUD_FFT_S16_H

#include "mcud.h"

typedef int16_t mcud_number;

typedef struct {
    mcud_number re;
    mcud_number im;
} mcud_point;

static inline mcud_number mcud_wrapped(int32_t value)
{
    return (mcud_number)(uint16_t)(uint32_t)value;
}

static inline mcud_number mcud_rounded(int32_t product)
{
    return mcud_wrapped((product + (1 << 14)) >> 15);
}

static inline mcud_number mcud_add(mcud_number a, mcud_number b)
{
    return mcud_wrapped(a + b);
}

static inline mcud_number mcud_subtract(mcud_number a, mcud_number b)
{
    return mcud_wrapped(a - b);
}

static inline mcud_number mcud_negative(mcud_number a)
{
    return mcud_wrapped(-a);
}

static inline mcud_number mcud_times(mcud_number a, mcud_number b)
{
    return mcud_rounded(a * b);
}

static inline mcud_number mcud_part(mcud_number a, int32_t radix)
{
    return mcud_rounded(a * (INT16_MAX / radix));
}

static inline mcud_number mcud_half(mcud_number a)
{
    return (mcud_number)(a >> 1);
}

static inline mcud_number mcud_half_sum(mcud_number a, mcud_number b)
{
    return mcud_wrapped((a + b) >> 1);
}

static inline mcud_number mcud_half_gap(mcud_number a, mcud_number b)
{
    return mcud_wrapped((a - b) >> 1);
}

static inline mcud_point mcud_product(mcud_point a, mcud_point b)
{
    return (mcud_point){mcud_rounded(a.re * b.re - a.im * b.im), mcud_rounded(a.re * b.im + a.im * b.re)};
}

#include "mcud_fft.h"

#endif
