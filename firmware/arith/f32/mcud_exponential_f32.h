/* exp(x) and functions computed from it, for float kernels. They use only + - * / of IEEE single precision: all
 * machines give the same bits, whichever C library they have. Errors are at most 1 unit in the last place for
 * exp(x), with the polynomial of Cephes (S. Moshier), and 7 for tanh(x) if |x| > 1e-34.
 */
#ifndef MCUD_EXPONENTIAL_F32_H
#define MCUD_EXPONENTIAL_F32_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^exponent, for -126 <= exponent <= 127. */
static inline float mcud_power_of_two(int32_t exponent)
{
    const uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* exp(x); a NaN for a NaN. */
static inline float mcud_expf(float x)
{
    if (!(x < 89.0f)) {
        return x + INFINITY;
    }
    if (x < -104.0f) {
        return 0.0f;
    }
    /* exp(x) = 2^n * exp(rest). Adding 1.5 * 2^23 leaves no bit for a fraction: the addition rounds. */
    const float rounder = 12582912.0f;
    const float n = (x * 1.44269504f + rounder) - rounder;
    /* log(2) in two parts: n times the first one is exact. */
    const float rest = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * rest + 1.3981999507e-3f;
    p = p * rest + 8.3334519073e-3f;
    p = p * rest + 4.1665795894e-2f;
    p = p * rest + 1.6666665459e-1f;
    p = p * rest + 5.0000001201e-1f;
    p = p * (rest * rest) + rest + 1.0f;
    /* Two factors, since 2^n alone may be infinite or 0 where the result is not. */
    const int32_t exponent = (int32_t)n;
    const int32_t half = exponent / 2;
    return p * mcud_power_of_two(half) * mcud_power_of_two(exponent - half);
}

/* 1 / (1 + exp(-x)). The exponential may overflow to infinity, which gives 0. */
static inline float mcud_sigmoidf(float x)
{
    return 1.0f / (1.0f + mcud_expf(-x));
}

/* tanh(x); a NaN for a NaN. The rational function of ONNX Runtime and Eigen takes equal time for all values. */
static inline float mcud_tanhf(float x)
{
    const float most = 7.90531111f; /* the quotient is 1 from here on */
    const float low = x < -most ? -most : x;
    const float inside = low > most ? most : low;
    const float square = inside * inside;
    float p = -2.76076848e-16f;
    p = p * square + 2.00018790e-13f;
    p = p * square - 8.60467152e-11f;
    p = p * square + 5.12229710e-8f;
    p = p * square + 1.48572236e-5f;
    p = p * square + 6.37261929e-4f;
    p = p * square + 4.89352456e-3f;
    float q = 1.19825840e-6f;
    q = q * square + 1.18534706e-4f;
    q = q * square + 2.26843463e-3f;
    q = q * square + 4.89352519e-3f;
    return inside * p / q;
}

#endif
