/* out = alpha * in + beta clipped to [0, 1], float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_HARD_SIGMOID_F32_H
#define MCUD_HARD_SIGMOID_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    float alpha;
    float beta;
} mcud_hard_sigmoid_f32_params;

mcud_kernel mcud_hard_sigmoid_f32;

#endif
