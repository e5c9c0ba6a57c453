/* out = acos(in); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_ACOS_F32_H
#define MCUD_ACOS_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_acos_f32_params;

mcud_kernel mcud_acos_f32;

#endif
