/* out = in rounded to float16, half to even, stored as float; beyond the range of float16 infinite.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_HALF_F32_H
#define MCUD_HALF_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_half_f32_params;

mcud_kernel mcud_half_f32;

#endif
