/* out = -1, 0 or 1, or NaN of NaN; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_SIGN_F32_H
#define MCUD_SIGN_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_sign_f32_params;

mcud_kernel mcud_sign_f32;

#endif
