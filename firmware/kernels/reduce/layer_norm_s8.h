/* out = (in - mean) / sqrt(variance + epsilon) * scale + bias along channels, int8; without the mean, which is then 0,
 * where it is not centred.
 *
 * in[0]    int8 [rows][groups][count]
 * out      int8 [rows][groups][count]; may be in[0]
 *
 * A value is normalised to z_bits fraction bits, z. The result is (z * factor / 2^32 + bias) / 2^shift; the bias has the
 * zero point and a half in it.
 */
#ifndef MCUD_LAYER_NORM_S8_H
#define MCUD_LAYER_NORM_S8_H

#include "mcud.h"

typedef struct {
    const int32_t *factors; /* [count][2]: factor and bias */
    int32_t groups;
    int32_t count;
    int32_t centred; /* 0 or 1 */
    int32_t input_zero_point;
    int32_t z_bits; /* 2^(z_bits + 2) * sqrt(count) is below 2^31 */
    int32_t shift;
    float epsilon; /* in units of the square of count times an input step */
} mcud_layer_norm_s8_params;

mcud_kernel mcud_layer_norm_s8;

#endif
