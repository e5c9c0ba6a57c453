/* out = a + b or a - b, int8.
 *
 * in       the operands that are not constants, in order
 * out      int8 [rows][cols][channels]; may be an operand that does not broadcast
 *
 * Steps are in elements; 0 if the operand broadcasts.
 *
 *   sum = a * a_multiplier + b * b_multiplier + constant
 *   q = clamp(quant.zero_point + sum / 2^shift, act.min, act.max), rounded half to even as in the reference
 *
 * The multipliers are scale ratios times 2^shift; the constant includes the operands' zero points; |sum| + 2^shift <
 * 2^31 for all int8 operands. Ties are frequent: every other sum, if both scales are the output's times a power of two.
 */
#ifndef MCUD_ADD_S8_H
#define MCUD_ADD_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *a; /* constant operand, or NULL */
    const int8_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    mcud_sum_quant quant;
    mcud_act_s8 act;
} mcud_add_s8_params;

mcud_kernel mcud_add_s8;

#endif
