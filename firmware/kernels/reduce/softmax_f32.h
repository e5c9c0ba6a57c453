/* Softmax within a row (over columns or channels), float.
 *
 * in[0]    float [rows][...]
 * out      float [rows][...]; may be in[0]
 *
 * Group g has its elements at g * group_step + i * step, i < count.
 */
#ifndef MCUD_SOFTMAX_F32_H
#define MCUD_SOFTMAX_F32_H

#include "mcud.h"

typedef struct {
    int32_t count;
    int32_t step;
    int32_t groups; /* in a row */
    int32_t group_step;
} mcud_softmax_f32_params;

mcud_kernel mcud_softmax_f32;

#endif
