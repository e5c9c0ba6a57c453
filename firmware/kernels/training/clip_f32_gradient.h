/* Gradient of the argument of a clip, float32: the result's gradient where act.min < clipped < act.max, else 0.
 *
 * in[0]    float [rows][row_elements], gradient of the clipped values
 * in[1]    float [rows][row_elements], the clipped values
 * out      float [rows][row_elements]; may be in[0] or in[1]
 */
#ifndef MCUD_CLIP_F32_GRADIENT_H
#define MCUD_CLIP_F32_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t row_elements;
    mcud_act_f32 act;
} mcud_clip_f32_gradient_params;

mcud_kernel mcud_clip_f32_gradient;

#endif
