/* A bias, float32, moved along its gradient: bias - rate * (gradient + factor * bias).
 *
 * in[0]    float [rows][cols][channels], gradient of the sum with the bias
 * in[1]    float [channels], one row
 * in[2]    float [2], the optimizer
 * out      as in[1], and may be its memory
 * scratch  float [channels] of sums, if there are several rows, unless in_place
 *
 * The gradient of the bias is the sum over all pixels. A step adds rows to the sums; the last one stores the result.
 * mcud_updates_f32.h explains optimizer, factor and in_place.
 */
#ifndef MCUD_BIAS_F32_UPDATE_H
#define MCUD_BIAS_F32_UPDATE_H

#include "mcud.h"

typedef struct {
    int32_t cols;
    int32_t channels;
    float factor;
    int32_t in_place;
} mcud_bias_f32_update_params;

mcud_kernel mcud_bias_f32_update;

#endif
