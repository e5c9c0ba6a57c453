/* out = clip(1 if a and b differ, else 0; act.min, act.max), float.
 *
 * in       the operands that are not constants, in order
 * out      float [rows][cols][channels]; may be an operand that does not broadcast
 */
#ifndef MCUD_NOT_EQUAL_F32_H
#define MCUD_NOT_EQUAL_F32_H

#include "mcud_binary_f32.h"

typedef mcud_binary_f32_params mcud_not_equal_f32_params;

mcud_kernel mcud_not_equal_f32;

#endif
