/* add_s8 by vectors, for operands that both have all channels. Sums without ties take fewer instructions. */
#ifndef MCUD_ADD_S8_MVE_H
#define MCUD_ADD_S8_MVE_H

#include "add_s8.h"

typedef struct {
    const int8_t *a; /* constant operand, or NULL */
    const int8_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    mcud_sum_quant quant;
    int32_t has_ties; /* 1 if some sum of two int8 values is a tie */
    mcud_act_s8 act;
} mcud_add_s8_mve_params;

mcud_kernel mcud_add_s8_mve;

#endif
