/* Counts runs, and states which ones have results.
 *
 * in[0]    int32_t [1][1][1], the number of runs before this one, less full periods; this run adds 1
 * out      int8_t [1][1][2]: whether this run has results, and whether it is the first run
 *
 * Run `first` has results, and every `period`th run after it.
 */
#ifndef MCUD_RUN_COUNT_H
#define MCUD_RUN_COUNT_H

#include "mcud.h"

typedef struct {
    int32_t first;  /* 0: the first run has results */
    int32_t period;
} mcud_run_count_params;

mcud_kernel mcud_run_count;

#endif
