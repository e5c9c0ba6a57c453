/* Softmax of 16-bit values, as TFLite's reference kernels compute it: exponentials and the reciprocal of their sum are
 * interpolated in tables.
 *
 * in[0]    int16_t [rows][groups][count]
 * out      int16_t [rows][groups][count], 0..32767 for 0..1; may be the input
 */
#ifndef MCUD_SOFTMAX_S16_H
#define MCUD_SOFTMAX_S16_H

#include "mcud.h"

typedef struct {
    const int16_t *exponentials; /* [513]: exp(x) for x from -10 to 0 */
    const int16_t *reciprocals;  /* [513]: 1 / (1 + x) for x from 0 to 1 */
    int32_t groups;
    int32_t count;
    int32_t multiplier; /* scales differences to the maximum, so that -65535 stands for -10; see mcud_scale_twice */
    int32_t exponent;
} mcud_softmax_s16_params;

mcud_kernel mcud_softmax_s16;

#endif
