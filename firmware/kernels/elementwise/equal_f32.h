/* out = clip(1 if a and b are equal, else 0; act.min, act.max), float.
 *
 * in       the operands that are not constants, in order
 * out      float [rows][cols][channels]; may be an operand that does not broadcast
 */
#ifndef MCUD_EQUAL_F32_H
#define MCUD_EQUAL_F32_H

#include "mcud_binary_f32.h"

typedef mcud_binary_f32_params mcud_equal_f32_params;

mcud_kernel mcud_equal_f32;

#endif
