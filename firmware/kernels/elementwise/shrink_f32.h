/* out = in + beta below -alpha, in - beta above alpha, else 0; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_SHRINK_F32_H
#define MCUD_SHRINK_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_shrink_f32_params;

mcud_kernel mcud_shrink_f32;

#endif
