/* out = in above 0, else alpha * (exp(in) - 1); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_ELU_F32_H
#define MCUD_ELU_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_elu_f32_params;

mcud_kernel mcud_elu_f32;

#endif
