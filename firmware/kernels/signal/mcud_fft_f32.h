/* The numbers of a Fourier transform: float. */
#ifndef MCUD_FFT_F32_H
#define MCUD_FFT_F32_H

#include "mcud.h"

typedef float number;

typedef struct {
    number re;
    number im;
} point;

static inline number add(number a, number b)
{
    return a + b;
}

static inline number subtract(number a, number b)
{
    return a - b;
}

static inline number negative(number a)
{
    return -a;
}

static inline number times(number a, number b)
{
    return a * b;
}

static inline number part(number a, int32_t radix)
{
    (void)radix; /* no sum is out of range */
    return a;
}

static inline number half(number a)
{
    return a * 0.5f;
}

static inline number half_sum(number a, number b)
{
    return half(a + b);
}

static inline number half_gap(number a, number b)
{
    return half(a - b);
}

static inline point product(point a, point b)
{
    return (point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

#include "mcud_fft.h"

#endif
