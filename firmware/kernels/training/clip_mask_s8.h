/* The int8 values that a clip or saturation left unchanged, as bits: bit i % 8 of byte i / 8 is 1 where first <= in <=
 * last.
 *
 * in[0]    int8 [rows][row_elements], the clipped values
 * out      uint8_t [rows][(row_elements + 7) / 8]; bits beyond the last element are 0
 */
#ifndef MCUD_CLIP_MASK_S8_H
#define MCUD_CLIP_MASK_S8_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    int32_t first; /* [first, last]: values between the bounds; first > last if there is none */
    int32_t last;
} mcud_clip_mask_s8_params;

mcud_kernel mcud_clip_mask_s8;

#endif
