/* out = clip(min(a, b), act.min, act.max), float; NaN if a or b is.
 *
 * in       the operands that are not constants, in order
 * out      float [rows][cols][channels]; may be an operand that does not broadcast
 */
#ifndef MCUD_MIN_F32_H
#define MCUD_MIN_F32_H

#include "mcud_binary_f32.h"

typedef mcud_binary_f32_params mcud_min_f32_params;

mcud_kernel mcud_min_f32;

#endif
