/* Mean over any axes, float.
 *
 * in[0]    float [...][cols][...]: an element of the output is the mean over `rows` rows, `outer` runs
 *          outer_step elements apart in each, `inner` elements in each run
 * out      float [...][cols][channels]
 */
#ifndef MCUD_REDUCE_MEAN_F32_H
#define MCUD_REDUCE_MEAN_F32_H

#include "mcud.h"

typedef struct {
    int32_t rows; /* 1 where rows are not averaged */
    int32_t outer;
    int32_t outer_step;
    int32_t inner;
    int32_t cols;
    int32_t col_step;
    int32_t channels;
    float count; /* of the elements summed */
} mcud_reduce_mean_f32_params;

mcud_kernel mcud_reduce_mean_f32;

#endif
