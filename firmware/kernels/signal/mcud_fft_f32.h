/* The numbers of a Fourier transform: float. */
#ifndef MCUD_FFT_F32_H
#define MCUD_FFT_F32_H

#include "mcud.h"

typedef float mcud_number;

typedef struct {
    mcud_number re;
    mcud_number im;
} mcud_point;

static inline mcud_number mcud_add(mcud_number a, mcud_number b)
{
    return a + b;
}

static inline mcud_number mcud_subtract(mcud_number a, mcud_number b)
{
    return a - b;
}

static inline mcud_number mcud_negative(mcud_number a)
{
    return -a;
}

static inline mcud_number mcud_times(mcud_number a, mcud_number b)
{
    return a * b;
}

static inline mcud_number mcud_part(mcud_number a, int32_t radix)
{
    (void)radix; /* no sum is out of range */
    return a;
}

static inline mcud_number mcud_half(mcud_number a)
{
    return a * 0.5f;
}

static inline mcud_number mcud_half_sum(mcud_number a, mcud_number b)
{
    return mcud_half(a + b);
}

static inline mcud_number mcud_half_gap(mcud_number a, mcud_number b)
{
    return mcud_half(a - b);
}

static inline mcud_point mcud_product(mcud_point a, mcud_point b)
{
    return (mcud_point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

#include "mcud_fft.h"

#endif
