/* out = in / (1 + exp(-alpha * in)); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_SWISH_F32_H
#define MCUD_SWISH_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_swish_f32_params;

mcud_kernel mcud_swish_f32;

#endif
