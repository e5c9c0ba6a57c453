/* out = clamp((in * m + b) >> shift), int8, with m, b and shift of the channel.
 *
 * in[0]    int8 [rows][cols][channels]
 * out      int8 [rows][cols][channels]; may be in[0]
 *
 * b includes the zero points and half of 2^shift, so that results are rounded half up. The code generator checks that
 * sums fit 32 bits.
 */
#ifndef MCUD_AFFINE_S8_H
#define MCUD_AFFINE_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *records; /* [channels]: m, b, shift */
    int32_t cols;
    int32_t channels;
    mcud_act_s8 act;
} mcud_affine_s8_params;

mcud_kernel mcud_affine_s8;

#endif
