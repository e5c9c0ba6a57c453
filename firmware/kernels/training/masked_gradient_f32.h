/* Gradient of the argument of a clip, float32: the result's gradient where the mask of clip_mask_f32 has a 1, else 0.
 *
 * in[0]    float [rows][row_elements], gradient of the clipped values
 * in[1]    uint8_t [rows][(row_elements + 7) / 8], the mask
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_MASKED_GRADIENT_F32_H
#define MCUD_MASKED_GRADIENT_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_masked_gradient_f32_params;

mcud_kernel mcud_masked_gradient_f32;

#endif
