/* Mean over any axes of 16-bit values, rounded twice, see mcud_scale_twice.
 *
 * in[0]    int16_t [...][cols][...]: an element of the output is the mean over `rows` rows, `outer` runs
 *          outer_step elements apart in each, `inner` elements in each run
 * out      int16_t [...][cols][channels]
 */
#ifndef MCUD_REDUCE_MEAN_S16_H
#define MCUD_REDUCE_MEAN_S16_H

#include "mcud.h"

typedef struct {
    int32_t rows; /* 1 if rows are not averaged */
    int32_t outer;
    int32_t outer_step;
    int32_t inner;
    int32_t cols;
    int32_t col_step;
    int32_t channels;
    int32_t multiplier; /* of the sum */
    int32_t exponent;
} mcud_reduce_mean_s16_params;

mcud_kernel mcud_reduce_mean_s16;

#endif
