/* Whether results of this run are ready, and whether it is the first one.
 *
 * in[0]    int32_t [1][1][1], the number of runs before this one, less full periods; this run is counted in
 * out      int8_t [1][1][2]: 1 if the run is due, 1 in the first run
 *
 * Due are run `first` and every `period` runs after it.
 */
#ifndef MCUD_RUN_COUNT_H
#define MCUD_RUN_COUNT_H

#include "mcud.h"

typedef struct {
    int32_t first;  /* 0: the first run is due */
    int32_t period;
} mcud_run_count_params;

mcud_kernel mcud_run_count;

#endif
