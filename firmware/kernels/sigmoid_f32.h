/* out = 1 / (1 + exp(-in)), float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_SIGMOID_F32_H
#define MCUD_SIGMOID_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
} mcud_sigmoid_f32_params;

mcud_kernel mcud_sigmoid_f32;

#endif
