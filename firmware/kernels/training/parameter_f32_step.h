/* A parameter, float32, moved along a direction: decay * parameter + step * direction.
 *
 * in[0]    float [row_elements], one row
 * in[1]    as in[0], the direction
 * out      as in[0], and may be its memory
 */
#ifndef MCUD_PARAMETER_F32_STEP_H
#define MCUD_PARAMETER_F32_STEP_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    float decay;
    float step;
} mcud_parameter_f32_step_params;

mcud_kernel mcud_parameter_f32_step;

#endif
