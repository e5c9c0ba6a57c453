/* out = clip(a / b, act.min, act.max), float.
 *
 * in       the operands that are not constants, in order
 * out      float [rows][cols][channels]; may be an operand that does not broadcast
 */
#ifndef MCUD_DIV_F32_H
#define MCUD_DIV_F32_H

#include "mcud_binary_f32.h"

typedef mcud_binary_f32_params mcud_div_f32_params;

mcud_kernel mcud_div_f32;

#endif
