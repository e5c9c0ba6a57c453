/* Gradient of what was clipped or saturated to int8: the gradient where act.min <= clipped <= act.max, else 0.
 *
 * in[0]    float [rows][row_elements], gradient of the clipped values
 * in[1]    int8 [rows][row_elements], the clipped values
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_CLIP_S8_GRADIENT_H
#define MCUD_CLIP_S8_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t row_elements;
    mcud_act_s8 act; /* the values between the bounds; min > max if there are none */
} mcud_clip_s8_gradient_params;

mcud_kernel mcud_clip_s8_gradient;

#endif
