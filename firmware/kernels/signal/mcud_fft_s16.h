/* The numbers of a Fourier transform: int16_t fixed point of 15 fractional bits: every stage divides by its radix, and rounds half up. */
#ifndef MCUD_FFT_S16_H
#define MCUD_FFT_S16_H

#include "mcud.h"

typedef int16_t number;

typedef struct {
    number re;
    number im;
} point;

static inline number wrapped(int32_t value)
{
    return (number)(uint16_t)(uint32_t)value;
}

static inline number rounded(int32_t product)
{
    return wrapped((product + (1 << 14)) >> 15);
}

static inline number add(number a, number b)
{
    return wrapped(a + b);
}

static inline number subtract(number a, number b)
{
    return wrapped(a - b);
}

static inline number negative(number a)
{
    return wrapped(-a);
}

static inline number times(number a, number b)
{
    return rounded(a * b);
}

static inline number part(number a, int32_t radix)
{
    return rounded(a * (INT16_MAX / radix));
}

static inline number half(number a)
{
    return (number)(a >> 1);
}

static inline number half_sum(number a, number b)
{
    return wrapped((a + b) >> 1);
}

static inline number half_gap(number a, number b)
{
    return wrapped((a - b) >> 1);
}

static inline point product(point a, point b)
{
    return (point){rounded(a.re * b.re - a.im * b.im), rounded(a.re * b.im + a.im * b.re)};
}

#include "mcud_fft.h"

#endif
