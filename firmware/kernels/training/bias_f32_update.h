/* A bias, float32, moved along its gradient: decay * bias + step * (sum of the gradient over all pixels).
 *
 * in[0]    float [rows][cols][channels], gradient of what the bias was added to
 * in[1]    float [channels], one row
 * out      as in[1], and may be its memory
 * scratch  float [channels] of sums, if there are several rows, unless in_place
 *
 * A step adds rows of the gradient to the sums; the last one stores the result. mcud_updates_f32.h explains
 * in_place.
 */
#ifndef MCUD_BIAS_F32_UPDATE_H
#define MCUD_BIAS_F32_UPDATE_H

#include "mcud.h"

typedef struct {
    int32_t cols;
    int32_t channels;
    float decay;
    float step;
    int32_t in_place;
} mcud_bias_f32_update_params;

mcud_kernel mcud_bias_f32_update;

#endif
