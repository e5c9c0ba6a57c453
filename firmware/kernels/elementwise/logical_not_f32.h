/* out = 1 if in is 0, else 0; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_LOGICAL_NOT_F32_H
#define MCUD_LOGICAL_NOT_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_logical_not_f32_params;

mcud_kernel mcud_logical_not_f32;

#endif
