/* out = a * b, int8; requantised as mcud_quant.h states.
 *
 * in       the operands that are not constants, in order
 * out      int8 [rows][cols][channels]; may be an operand that does not broadcast
 *
 * Steps are in elements; 0 if the operand broadcasts.
 */
#ifndef MCUD_MUL_S8_H
#define MCUD_MUL_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *a; /* constant operand, or NULL */
    const int8_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    int32_t a_zero_point;
    int32_t b_zero_point;
    int32_t twice; /* 1: rounded twice, see mcud_scale_twice; quant.shift is then an exponent */
    mcud_quant quant;
    mcud_act_s8 act;
} mcud_mul_s8_params;

mcud_kernel mcud_mul_s8;

#endif
