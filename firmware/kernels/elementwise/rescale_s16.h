/* Converts values to another quantisation, rounded twice (mcud_scale_twice); negative values may have a separate scale,
 * for RELU and LEAKY_RELU. Converts 16-bit values to 16-bit values, or from or to int8.
 *
 * in[0]    int16_t or int8_t [rows][row_elements]
 * out      int16_t or int8_t [rows][row_elements]; may be the input if both are of one size
 */
#ifndef MCUD_RESCALE_S16_H
#define MCUD_RESCALE_S16_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t row_elements;
    int32_t in_bytes;  /* of an element: 1 or 2 */
    int32_t out_bytes;
    int32_t in_zero_point;
    int32_t out_zero_point;
    int32_t multiplier; /* of values from the zero point up */
    int32_t exponent;
    int32_t below_multiplier; /* of values below it */
    int32_t below_exponent;
    int32_t below_sign; /* 1; or -1: below_multiplier applies to their magnitudes */
    mcud_act_s16 act;
} mcud_rescale_s16_params;

mcud_kernel mcud_rescale_s16;

#endif
