/* Attention of one query for each head over the live positions of keys and values, float.
 *
 * in[0]    int32_t [1] the position
 * in[1]    float [heads][depth] queries
 * in[2]    float keys, one row of the tensor; in[3] float values, one row
 * out      float [heads][width]
 * scratch  float [count]
 *
 * Rows first + first_step * position to end + end_step * position - 1 are live, of 0 to count - 1. If there is
 * none, all rows weigh the same.
 */
#ifndef MCUD_ATTEND_F32_H
#define MCUD_ATTEND_F32_H

#include "mcud.h"

typedef struct {
    int32_t heads;
    int32_t group; /* heads that share keys and values */
    int32_t depth; /* values of a query and of a key */
    int32_t width; /* values of a result */
    int32_t count; /* rows */
    int32_t first;
    int32_t first_step;
    int32_t end;
    int32_t end_step;
    int32_t key_pitch; /* values from a row to the next */
    int32_t key_head;  /* values from a head to the next */
    int32_t value_pitch;
    int32_t value_head;
    float scale;
} mcud_attend_f32_params;

mcud_kernel mcud_attend_f32;

#endif
