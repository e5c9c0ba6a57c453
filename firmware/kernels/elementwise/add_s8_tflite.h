/* out = a + b or a - b, int8, rounded as by TFLite's reference kernels: each operand, times 2^20, is scaled to a common
 * scale and rounded twice; so is the sum. See mcud_scale_twice.
 *
 * in       the operands that are not constants, in order
 * out      int8 [rows][cols][channels]; may be an operand that does not broadcast
 *
 * Steps are in elements; 0 if the operand broadcasts.
 */
#ifndef MCUD_ADD_S8_TFLITE_H
#define MCUD_ADD_S8_TFLITE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *a; /* constant operand, or NULL */
    const int8_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    int32_t a_zero_point;
    int32_t a_multiplier;
    int32_t a_exponent;
    int32_t b_zero_point;
    int32_t b_multiplier;
    int32_t b_exponent;
    int32_t b_sign; /* 1, or -1 for a subtraction */
    mcud_quant quant; /* its shift is an exponent */
    mcud_act_s8 act;
    int32_t exact; /* 1 or 2: the first or the second operand is exact, see mcud_sum_tflite.h; or 0 */
} mcud_add_s8_tflite_params;

mcud_kernel mcud_add_s8_tflite;

#endif
