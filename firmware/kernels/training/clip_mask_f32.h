/* The values that a clip left unchanged, as bits: bit i % 8 of byte i / 8 is 1 where act.min < in < act.max.
 *
 * in[0]    float [rows][row_elements], the clipped values
 * out      uint8_t [rows][(row_elements + 7) / 8]; bits beyond the last element are 0
 */
#ifndef MCUD_CLIP_MASK_F32_H
#define MCUD_CLIP_MASK_F32_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t row_elements;
    mcud_act_f32 act;
} mcud_clip_mask_f32_params;

mcud_kernel mcud_clip_mask_f32;

#endif
