/* out = a * b of 16-bit values, rounded twice as by TFLite's reference kernels, see mcud_scale_twice.
 *
 * in       the operands that are not constants, in order
 * out      int16_t [rows][cols][channels]; may be an operand that does not broadcast
 *
 * Steps are in elements; 0 if the operand broadcasts.
 */
#ifndef MCUD_MUL_S16_H
#define MCUD_MUL_S16_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int16_t *a; /* constant operand, or NULL */
    const int16_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    int32_t multiplier;
    int32_t exponent; /* at most 0 */
    mcud_act_s16 act;
} mcud_mul_s16_params;

mcud_kernel mcud_mul_s16;

#endif
