/* out = clip(a modulo b, with the sign of a, act.min, act.max), float.
 *
 * in       the operands that are not constants, in order
 * out      float [rows][cols][channels]; may be an operand that does not broadcast
 */
#ifndef MCUD_FMOD_F32_H
#define MCUD_FMOD_F32_H

#include "mcud_binary_f32.h"

typedef mcud_binary_f32_params mcud_fmod_f32_params;

mcud_kernel mcud_fmod_f32;

#endif
