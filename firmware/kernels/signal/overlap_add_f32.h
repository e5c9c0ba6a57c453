/* Frames that overlap, added: each run completes `step` values of every frame.
 *
 * in[0]    float [1][frames][size]
 * in[1]    float [1][1][size], the incomplete sums; updated in place for the next run
 * out      float [1][frames][step]
 */
#ifndef MCUD_OVERLAP_ADD_F32_H
#define MCUD_OVERLAP_ADD_F32_H

#include "mcud.h"

typedef struct {
    int32_t frames;
    int32_t size;
    int32_t step; /* 1..size */
} mcud_overlap_add_f32_params;

mcud_kernel mcud_overlap_add_f32;

#endif
