/* Gradient of the argument of a function with two slopes, float32: the result's gradient where the mask of
 * clip_mask_f32 has a 1, else that gradient times the slope of the channel.
 *
 * in[0]    float [rows][cols][channels], gradient of the result
 * in[1]    uint8_t [rows][(cols * channels + 7) / 8], the mask
 * out      float [rows][cols][channels]; may be in[0]
 */
#ifndef MCUD_SLOPED_GRADIENT_F32_H
#define MCUD_SLOPED_GRADIENT_F32_H

#include "mcud.h"

typedef struct {
    const float *slopes; /* [channels] */
    int32_t cols;
    int32_t channels;
} mcud_sloped_gradient_f32_params;

mcud_kernel mcud_sloped_gradient_f32;

#endif
