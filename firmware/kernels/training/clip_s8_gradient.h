/* Gradient of the argument of a clip or saturation to int8: the result's gradient where first <= clipped <= last, else
 * 0.
 *
 * in[0]    float [rows][row_elements], gradient of the clipped values
 * in[1]    int8 [rows][row_elements], the clipped values
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_CLIP_S8_GRADIENT_H
#define MCUD_CLIP_S8_GRADIENT_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    int32_t first; /* [first, last]: values between the bounds; first > last if there is none */
    int32_t last;
} mcud_clip_s8_gradient_params;

mcud_kernel mcud_clip_s8_gradient;

#endif
