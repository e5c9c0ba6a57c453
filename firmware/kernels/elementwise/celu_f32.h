/* out = in above 0, else alpha * (exp(in / alpha) - 1); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_CELU_F32_H
#define MCUD_CELU_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_celu_f32_params;

mcud_kernel mcud_celu_f32;

#endif
