/* Attention of one query for each head over the live positions of keys and values whose rows are int8.
 *
 * in[0]    int32_t [1] the position
 * in[1]    float [of.heads][of.depth] queries
 * in[2]    int8_t keys, one row of the tensor; in[3] int8_t values, one row
 * in[4]    float scales of the keys; in[5] float scales of the values; both only if rows have scales
 * out      float [of.heads][of.width]
 * scratch  float [live.count]
 *
 * A key or a value is its integer times the scale of its row. The score of a row is the sum of the products of the
 * query and the integers, times the scale. Without scales of rows, of.scale includes the one scale of the keys, whose
 * zero point changes no weight, and a value is value_scale * (integer - value_zero).
 */
#ifndef MCUD_ATTEND_S8_H
#define MCUD_ATTEND_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_attend_heads of;
    mcud_live_rows live;
    mcud_row_scales key_scales;
    mcud_row_scales value_scales;
    int32_t scaled; /* 0 or 1: whether rows have scales */
    float value_scale;
    float value_zero;
} mcud_attend_s8_params;

mcud_kernel mcud_attend_s8;

#endif
