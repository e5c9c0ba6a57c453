/* The time filter of SVDF, float: out[u] = bias[u] + the sum over the filters of u of state * weights.
 *
 * in[0]    float [1][1][units * rank], the newest values
 * in[1]    float [1][units * rank][memory], the last values of each filter, oldest first; updated in place
 * out      float [1][1][units]
 */
#ifndef MCUD_SVDF_F32_H
#define MCUD_SVDF_F32_H

#include "mcud.h"

typedef struct {
    const float *weights; /* [units * rank][memory] */
    const float *bias;    /* [units] */
    int32_t units;
    int32_t rank; /* filters of a unit */
    int32_t memory;
} mcud_svdf_f32_params;

mcud_kernel mcud_svdf_f32;

#endif
