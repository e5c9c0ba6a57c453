/* out = (in - mean) / sqrt(variance + epsilon) * scale + bias along channels, int8. If it is not centred, the mean is
 * taken as 0.
 *
 * in[0]    int8 [rows][groups][count]
 * out      int8 [rows][groups][count]; may be in[0]
 *
 * z is the normalised value with z_bits fraction bits. The result is (z * factor / 2^32 + bias) / 2^shift, rounded
 * down; the bias includes the zero point and a half.
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
    float epsilon; /* in units of (input scale / count)^2 */
} mcud_layer_norm_s8_params;

mcud_kernel mcud_layer_norm_s8;

#endif
