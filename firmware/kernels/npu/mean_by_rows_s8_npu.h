/* Mean over all rows and columns, int8: by an Ethos-U beside the core, if one step has all rows in at most two
 * contiguous runs. Else the core adds the rows of a step to its sums.
 *
 * in[0]    int8 [input_rows][...]
 * out      int8 [1][1][...]
 * scratch  that of the core's call
 */
#ifndef MCUD_MEAN_BY_ROWS_S8_NPU_H
#define MCUD_MEAN_BY_ROWS_S8_NPU_H

#include "mcud.h"

typedef struct {
    const mcud_stage_call *calls; /* [2]: conv2d_s8_npu, and the core's */
    int32_t input_rows;
} mcud_mean_by_rows_s8_npu_params;

mcud_kernel mcud_mean_by_rows_s8_npu;

#endif
