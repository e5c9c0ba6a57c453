/* out = in where it is not negative, alpha * in elsewhere; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_LEAKY_RELU_F32_H
#define MCUD_LEAKY_RELU_F32_H

#include "mcud.h"

typedef struct {
    int32_t row_elements;
    float alpha;
} mcud_leaky_relu_f32_params;

mcud_kernel mcud_leaky_relu_f32;

#endif
