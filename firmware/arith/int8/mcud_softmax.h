/* Fixed-point probabilities of the int8 softmax kernels. */
#ifndef MCUD_SOFTMAX_H
#define MCUD_SOFTMAX_H

#include "mcud_largest.h"
#include "mcud_quant.h"

/* A group of values, `step` apart. */
typedef struct {
    const uint32_t *table; /* [256]: exp(-scale * (max - q)), fixed point */
    int32_t count;
    int32_t step;
    int32_t multiplier;
    int32_t shift; /* above 32 */
    int32_t zero_point;
} mcud_softmax_group;

/* 2^62 / sum, for mcud_probability(). `one`, the table's first entry, is a power of 2; one <= sum. */
#if defined(__GNUC__) && defined(__arm__) && !defined(__ARM_FEATURE_IDIV)
/* Divides bit by bit: in the library's division, the number of rounds depends on data. Not inlined, since it would lack
 * registers. */
__attribute__((noinline)) static uint64_t mcud_reciprocal(uint32_t sum, uint32_t one)
{
    uint64_t quotient = one == sum;
    uint32_t rest = one == sum ? 0 : one;
    uint32_t rounds = 30;
    for (uint32_t power = one; power != 0; power += power) {
        rounds++;
    }
    for (; rounds > 0; rounds--) {
        const uint32_t lacking = sum - rest;
        quotient += quotient;
        if (rest >= lacking) {
            rest -= lacking;
            quotient |= 1;
        } else {
            rest += rest;
        }
    }
    return quotient;
}
#else
static inline uint64_t mcud_reciprocal(uint32_t sum, uint32_t one)
{
    (void)one;
    return ((uint64_t)1 << 62) / sum;
}
#endif

/* exponential / sum with 30 fraction bits; exponential <= sum, so that the product stays below 2^62. */
static inline int32_t mcud_probability(uint32_t exponential, uint64_t reciprocal)
{
    return (int32_t)((exponential * reciprocal) >> 32);
}

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_softmax_mve.h"
#else

/* Computes y[count] from x[count] and returns 1; returns 0 if the values must be computed singly. */
static inline int32_t mcud_softmax_run(const mcud_softmax_group *softmax, const int8_t *x, int8_t *y)
{
    (void)softmax;
    (void)x;
    (void)y;
    return 0;
}

#endif

#endif
