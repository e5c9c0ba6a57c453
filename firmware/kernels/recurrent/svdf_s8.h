/* The time filter of SVDF, int8: out[u] is bias[u] plus the sum of state * weights over all
 * values of the `rank` filters of unit u.
 *
 * in[0]    int8 [1][1][units * rank], the newest values
 * in[1]    int8 [1][units * rank][memory], the last values of each filter, oldest first; updated in place
 * out      int8 [1][1][units]
 *
 * The state's zero point is folded into the bias; sums fit 32 bits; requantised as mcud_quant.h states.
 */
#ifndef MCUD_SVDF_S8_H
#define MCUD_SVDF_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights; /* [units * rank][memory] */
    const int32_t *bias;   /* [units] */
    int32_t units;
    int32_t rank; /* filters of a unit */
    int32_t memory;
    mcud_quant quant;
} mcud_svdf_s8_params;

mcud_kernel mcud_svdf_s8;

#endif
