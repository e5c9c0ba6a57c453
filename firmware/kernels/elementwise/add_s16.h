/* out = a + b or a - b of 16-bit values, rounded as by TFLite's reference kernels: each operand, times 2^15, is scaled
 * to a common scale and rounded twice; so is the sum. See mcud_scale_twice.
 *
 * in       the operands that are not constants, in order
 * out      int16_t [rows][cols][channels]; may be an operand that does not broadcast
 *
 * Steps are in elements; 0 if the operand broadcasts.
 */
#ifndef MCUD_ADD_S16_H
#define MCUD_ADD_S16_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int16_t *a; /* constant operand, or NULL */
    const int16_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    int32_t a_multiplier;
    int32_t a_exponent;
    int32_t b_multiplier;
    int32_t b_exponent;
    int32_t b_sign; /* 1, or -1 for a subtraction */
    int32_t multiplier; /* of the sum */
    int32_t exponent;
    mcud_act_s16 act;
} mcud_add_s16_params;

mcud_kernel mcud_add_s16;

#endif
