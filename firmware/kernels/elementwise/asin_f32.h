/* out = asin(in); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_ASIN_F32_H
#define MCUD_ASIN_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_asin_f32_params;

mcud_kernel mcud_asin_f32;

#endif
