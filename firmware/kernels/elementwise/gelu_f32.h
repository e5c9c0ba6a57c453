/* out = in * (1 + erf(in / sqrt(2))) / 2; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_GELU_F32_H
#define MCUD_GELU_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_gelu_f32_params;

mcud_kernel mcud_gelu_f32;

#endif
