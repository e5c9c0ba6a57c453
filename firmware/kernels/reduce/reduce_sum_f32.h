/* Sum along any axes, divided by `count`, which is 1 unless it is a mean, float.
 *
 * in[0]    float [...][cols][...]: one element of the output reduces `rows` rows; of each row `outer` runs, whose
 *          starts are outer_step elements apart; of each run `inner` elements
 * out      float [...][cols][channels]
 */
#ifndef MCUD_REDUCE_SUM_F32_H
#define MCUD_REDUCE_SUM_F32_H

#include "mcud_reduce_f32.h"

typedef mcud_reduce_f32_params mcud_reduce_sum_f32_params;

mcud_kernel mcud_reduce_sum_f32;

#endif
