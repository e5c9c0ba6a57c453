/* out = a / b, int8: divides the real values in single precision, then quantises half to even.
 *
 * in       the operands that are not constants, in order
 * out      int8 [rows][cols][channels]; may be an operand that does not broadcast
 *
 * Steps are in elements; 0 if the operand broadcasts.
 *
 * x / 0 saturates by the sign of x; 0 / 0 gives `act.min`.
 */
#ifndef MCUD_DIV_S8_H
#define MCUD_DIV_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *a; /* constant operand, or NULL */
    const int8_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    int32_t a_zero_point;
    int32_t b_zero_point;
    int32_t output_zero_point;
    mcud_act_s8 act;
    float a_scale;
    float b_scale;
    float output_scale;
} mcud_div_s8_params;

mcud_kernel mcud_div_s8;

#endif
