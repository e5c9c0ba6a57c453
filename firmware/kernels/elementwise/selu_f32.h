/* out = beta * in above 0, else beta * alpha * (exp(in) - 1); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_SELU_F32_H
#define MCUD_SELU_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_selu_f32_params;

mcud_kernel mcud_selu_f32;

#endif
