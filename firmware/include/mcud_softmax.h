/* Fixed-point probabilities of the int8 softmax kernels. */
#ifndef MCUD_SOFTMAX_H
#define MCUD_SOFTMAX_H

#include "mcud_quant.h"

/* 2^62 / sum, for mcud_probability(); sum > 0. */
static inline uint64_t mcud_reciprocal(uint32_t sum)
{
    return ((uint64_t)1 << 62) / sum;
}

/* exponential / sum with 30 fraction bits; exponential <= sum, so that the product stays below 2^62. */
static inline int32_t mcud_probability(uint32_t exponential, uint64_t reciprocal)
{
    return (int32_t)((exponential * reciprocal) >> 32);
}

#endif
