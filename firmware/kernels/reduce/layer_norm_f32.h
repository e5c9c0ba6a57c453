/* out = (in - mean) / sqrt(variance + epsilon) * scale + bias along channels, float. If it is not centred, the mean is
 * taken as 0.
 *
 * in[0]    float [rows][groups][count]
 * out      float [rows][groups][count]; may be in[0]
 */
#ifndef MCUD_LAYER_NORM_F32_H
#define MCUD_LAYER_NORM_F32_H

#include "mcud.h"

typedef struct {
    const float *scale; /* [count] */
    const float *bias;  /* [count] */
    int32_t groups;
    int32_t count;
    int32_t centred; /* 0 or 1 */
    float epsilon;
} mcud_layer_norm_f32_params;

mcud_kernel mcud_layer_norm_f32;

#endif
