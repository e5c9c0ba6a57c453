/* Mean over any axes, int8; rounded once, half to even (means of 2^n elements are often ties), or twice.
 *
 * in[0]    int8 [...][cols][...]: an element of the output is the mean over `rows` rows, `outer` runs
 *          outer_step elements apart in each, `inner` elements in each run
 * out      int8 [...][cols][channels]
 */
#ifndef MCUD_REDUCE_MEAN_S8_H
#define MCUD_REDUCE_MEAN_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t rows; /* 1 if rows are not averaged */
    int32_t outer;
    int32_t outer_step;
    int32_t inner;
    int32_t cols;
    int32_t col_step;
    int32_t channels;
    int32_t bias; /* minus the input's zero point times the number of summed elements */
    int32_t twice; /* 1: rounded twice, see mcud_scale_twice; quant.shift is then an exponent */
    mcud_quant quant;
} mcud_reduce_mean_s8_params;

mcud_kernel mcud_reduce_mean_s8;

#endif
