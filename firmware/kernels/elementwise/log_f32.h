/* out = the natural logarithm of in; float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_LOG_F32_H
#define MCUD_LOG_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_log_f32_params;

mcud_kernel mcud_log_f32;

#endif
