/* The numbers of a Fourier transform: int32_t fixed point of 31 fractional bits: every stage divides by its radix, and rounds half up. */
#ifndef MCUD_FFT_S32_H
#define MCUD_FFT_S32_H

#include "mcud.h"

typedef int32_t number;

typedef struct {
    number re;
    number im;
} point;

static inline number rounded(int64_t product)
{
    return (number)((product + (1 << 30)) >> 31);
}

static inline number add(number a, number b)
{
    return (number)((uint32_t)a + (uint32_t)b);
}

static inline number subtract(number a, number b)
{
    return (number)((uint32_t)a - (uint32_t)b);
}

static inline number negative(number a)
{
    return subtract(0, a);
}

static inline number times(number a, number b)
{
    return rounded((int64_t)a * b);
}

static inline number part(number a, int32_t radix)
{
    return times(a, INT32_MAX / radix);
}

static inline number half(number a)
{
    return a >> 1;
}

static inline number half_sum(number a, number b)
{
    return half(add(a, b));
}

static inline number half_gap(number a, number b)
{
    return half(subtract(a, b));
}

static inline point product(point a, point b)
{
    return (point){rounded((int64_t)a.re * b.re - (int64_t)a.im * b.im),
                   rounded((int64_t)a.re * b.im + (int64_t)a.im * b.re)};
}

#include "mcud_fft.h"

#endif
