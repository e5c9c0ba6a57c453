/* out = in where it is not negative, else alpha * in; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_LEAKY_RELU_F32_H
#define MCUD_LEAKY_RELU_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_leaky_relu_f32_params;

mcud_kernel mcud_leaky_relu_f32;

#endif
