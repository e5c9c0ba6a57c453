/* A parameter, float32, moved along its gradient after the last sample of a batch:
 * parameter - rate * (sum / batch + weight_decay * parameter).
 *
 * in[0]    float [row_elements], one row
 * in[1]    as in[0], the sum of its gradients
 * in[2]    float [2], the optimizer of mcud_updates_f32.h
 * in[3]    float [1], a factor of the sum; only if is_clipped
 * out      as in[0], and may be its memory
 */
#ifndef MCUD_PARAMETER_F32_STEP_H
#define MCUD_PARAMETER_F32_STEP_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    float weight_decay;
    float batch;
    int32_t is_clipped;
} mcud_parameter_f32_step_params;

mcud_kernel mcud_parameter_f32_step;

#endif
