/* out = in clipped to [act.min, act.max], float; a NaN stays.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_CLIP_F32_H
#define MCUD_CLIP_F32_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t row_elements;
    mcud_act_f32 act;
} mcud_clip_f32_params;

mcud_kernel mcud_clip_f32;

#endif
