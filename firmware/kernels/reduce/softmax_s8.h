/* Softmax within a row (over columns or channels), int8.
 *
 * in[0]    int8 [rows][...]
 * out      int8 [rows][...]; may be in[0]
 *
 * Group g has its elements at g * group_step + i * step, i < count.
 *
 * The sum of a group's table entries fits 32 bits; one division per group gives its reciprocal, and a
 * probability with 30 fraction bits is requantised as mcud_quant.h states.
 */
#ifndef MCUD_SOFTMAX_S8_H
#define MCUD_SOFTMAX_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const uint32_t *table; /* [256]: exp(-scale * (max - q)), fixed point */
    int32_t count;
    int32_t step;
    int32_t groups; /* in a row */
    int32_t group_step;
    mcud_quant quant; /* shift is above 32 */
} mcud_softmax_s8_params;

mcud_kernel mcud_softmax_s8;

#endif
