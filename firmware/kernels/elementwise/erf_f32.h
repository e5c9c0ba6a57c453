/* out = the error function of in; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_ERF_F32_H
#define MCUD_ERF_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_erf_f32_params;

mcud_kernel mcud_erf_f32;

#endif
