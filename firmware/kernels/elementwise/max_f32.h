/* out = clip(max(a, b), act.min, act.max), float; NaN if a or b is.
 *
 * in       the operands that are not constants, in order
 * out      float [rows][cols][channels]; may be an operand that does not broadcast
 */
#ifndef MCUD_MAX_F32_H
#define MCUD_MAX_F32_H

#include "mcud_binary_f32.h"

typedef mcud_binary_f32_params mcud_max_f32_params;

mcud_kernel mcud_max_f32;

#endif
