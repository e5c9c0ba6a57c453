/* A bias, float32, moved along its gradient: decay * bias + step * (sum of the gradient over all pixels).
 *
 * in[0]    float [channels], one row
 * in[1]    float [rows][cols][channels], gradient of what the bias was added to
 * out      as in[0], and may be its memory
 */
#ifndef MCUD_BIAS_F32_UPDATE_H
#define MCUD_BIAS_F32_UPDATE_H

#include "mcud.h"

typedef struct {
    int32_t rows;
    int32_t cols;
    int32_t channels;
    float decay;
    float step;
} mcud_bias_f32_update_params;

mcud_kernel mcud_bias_f32_update;

#endif
