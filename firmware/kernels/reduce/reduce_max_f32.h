/* The largest value along any axes, float. The first element stays unless a later one is greater: the result is NaN if
 * the first element is; other NaNs are ignored.
 *
 * in[0]    float [...][cols][...]: one element of the output reduces `rows` rows; of each row `outer` runs, whose
 *          starts are outer_step elements apart; of each run `inner` elements
 * out      float [...][cols][channels]
 */
#ifndef MCUD_REDUCE_MAX_F32_H
#define MCUD_REDUCE_MAX_F32_H

#include "mcud_reduce_f32.h"

typedef mcud_reduce_f32_params mcud_reduce_max_f32_params;

mcud_kernel mcud_reduce_max_f32;

#endif
