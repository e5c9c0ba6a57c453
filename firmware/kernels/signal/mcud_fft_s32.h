/* The numbers of a Fourier transform: int32_t in fixed point with 31 fractional bits. Every stage divides by its
 * radix; products round half up.
 */
#ifndef MCUD_FFT_S32_H
#define MCUD_FFT_S32_H

#include "mcud.h"

typedef int32_t mcud_number;

typedef struct {
    mcud_number re;
    mcud_number im;
} mcud_point;

static inline mcud_number mcud_rounded(int64_t product)
{
    return (mcud_number)((product + (1 << 30)) >> 31);
}

static inline mcud_number mcud_add(mcud_number a, mcud_number b)
{
    return (mcud_number)((uint32_t)a + (uint32_t)b);
}

static inline mcud_number mcud_subtract(mcud_number a, mcud_number b)
{
    return (mcud_number)((uint32_t)a - (uint32_t)b);
}

static inline mcud_number mcud_negative(mcud_number a)
{
    return mcud_subtract(0, a);
}

static inline mcud_number mcud_times(mcud_number a, mcud_number b)
{
    return mcud_rounded((int64_t)a * b);
}

static inline mcud_number mcud_part(mcud_number a, int32_t radix)
{
    return mcud_times(a, INT32_MAX / radix);
}

static inline mcud_number mcud_half(mcud_number a)
{
    return a >> 1;
}

static inline mcud_number mcud_half_sum(mcud_number a, mcud_number b)
{
    return mcud_half(mcud_add(a, b));
}

static inline mcud_number mcud_half_gap(mcud_number a, mcud_number b)
{
    return mcud_half(mcud_subtract(a, b));
}

static inline mcud_point mcud_product(mcud_point a, mcud_point b)
{
    return (mcud_point){mcud_rounded((int64_t)a.re * b.re - (int64_t)a.im * b.im),
                        mcud_rounded((int64_t)a.re * b.im + (int64_t)a.im * b.re)};
}

#include "mcud_fft.h"

#endif
