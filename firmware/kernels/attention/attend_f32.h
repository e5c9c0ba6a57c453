/* Attention of one query for each head over the live positions of keys and values, float.
 *
 * in[0]    int32_t [1] the position
 * in[1]    float [of.heads][of.depth] queries
 * in[2]    float keys, one row of the tensor; in[3] float values, one row
 * out      float [of.heads][of.width]
 * scratch  float [live.count]
 */
#ifndef MCUD_ATTEND_F32_H
#define MCUD_ATTEND_F32_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_attend_heads of;
    mcud_live_rows live;
} mcud_attend_f32_params;

mcud_kernel mcud_attend_f32;

#endif
