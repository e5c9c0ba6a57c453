/* Sums of int8 products in which a vector's lanes are output channels: the core of the convolutions named _rvv.
 *
 * Constants are one record for each group of n channels:
 *
 *   int32_t bias[n]            minus the input's zero point times the sum of the weights
 *   int32_t multipliers[n]
 *   int8_t  weights[depth][n]  then 0, up to a whole word
 *
 * The portable twin has the same functions and gives the same bits. */
#ifndef MCUD_LANES_S8_H
#define MCUD_LANES_S8_H

#include "mcud_dot_vector_s8.h"
#include "mcud_rvv.h"

/* A record of `lanes` channels of a depthwise convolution. */
typedef struct {
    const int32_t *record;
    int32_t lanes;
    mcud_finish_s8 finish;
} mcud_lanes_depthwise;

#if MCUD_RVV
#include "mcud_lanes_rvv.h"
#else
#include "mcud_lanes_c.h"
#endif

#endif
