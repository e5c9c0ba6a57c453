/* Logistic function or hyperbolic tangent of 16-bit values, as TFLite's reference kernels compute them: by
 * interpolation in a table of the logistic function at multiples of 1/24.
 *
 * in[0]    int16_t [rows][row_elements]
 * out      int16_t [rows][row_elements], -32768..32767 for -1..1; may be the input
 */
#ifndef MCUD_SIGMOID_S16_H
#define MCUD_SIGMOID_S16_H

#include "mcud.h"

typedef struct {
    const uint16_t *table; /* [256]: 2^16 / (1 + exp(-i / 24)) */
    int32_t row_elements;
    int32_t multiplier; /* to multiples of 1/24, times 2^9 for the logistic function, 2^8 for the tangent */
    int32_t shift;      /* 0..31, to the right */
    int32_t tangent;    /* 1: tanh(x) = 2 / (1 + exp(-2x)) - 1 */
} mcud_sigmoid_s16_params;

mcud_kernel mcud_sigmoid_s16;

#endif
