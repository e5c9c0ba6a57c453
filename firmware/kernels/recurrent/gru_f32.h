/* Gated recurrent unit, float: gates z, r and the candidate, in this order.
 *
 * in[0]    float [1][steps][inputs]
 * in[1]    float [1][1][hidden], h, if it is not a constant
 * scratch  see mcud_recurrent_f32.h
 * out      float [1][steps][hidden], or [1][1][hidden]
 */
#ifndef MCUD_GRU_F32_H
#define MCUD_GRU_F32_H

#include "mcud_recurrent_f32.h"

typedef mcud_recurrent_f32_params mcud_gru_f32_params;

mcud_kernel mcud_gru_f32;

#endif
