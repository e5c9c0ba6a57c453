/* out = in * (1 + tanh(sqrt(2 / pi) * (in + 0.044715 in^3))) / 2; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_GELU_TANH_F32_H
#define MCUD_GELU_TANH_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_gelu_tanh_f32_params;

mcud_kernel mcud_gelu_tanh_f32;

#endif
