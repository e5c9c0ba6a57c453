/* Frames that overlap, added and saturated: each run completes `step` values of every frame.
 *
 * in[0]    int16_t [1][frames][size]
 * in[1]    int16_t [1][1][size], the incomplete sums; updated in place for the next run
 * out      int16_t [1][frames][step]
 */
#ifndef MCUD_OVERLAP_ADD_S16_H
#define MCUD_OVERLAP_ADD_S16_H

#include "mcud.h"

typedef struct {
    int32_t frames;
    int32_t size;
    int32_t step; /* 1..size */
} mcud_overlap_add_s16_params;

mcud_kernel mcud_overlap_add_s16;

#endif
