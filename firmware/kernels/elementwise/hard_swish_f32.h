/* out = in * (alpha * in + beta, clipped to [0, 1]); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_HARD_SWISH_F32_H
#define MCUD_HARD_SWISH_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_hard_swish_f32_params;

mcud_kernel mcud_hard_swish_f32;

#endif
