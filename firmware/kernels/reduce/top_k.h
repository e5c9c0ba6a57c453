/* The largest or smallest elements along an axis, sorted, or their indices.
 *
 * A line is the elements from which one result is chosen: along rows, or within a row, where its elements are `step`
 * apart.
 *
 * in[0]    [...][...]
 * out      of the input's type, or int32_t
 */
#ifndef MCUD_TOP_K_H
#define MCUD_TOP_K_H

#include "mcud.h"

typedef struct {
    int32_t size;    /* elements of a line */
    int32_t count;   /* elements chosen from each line */
    int32_t by_rows; /* 1: a line has one element in each row */
    int32_t step;
    int32_t lines; /* of a row, or of all rows */
    int32_t line_step;
    int32_t out_line_step;
    int32_t element; /* 0: int8_t, 1: int32_t, 2: float */
    int32_t indices; /* 1: the result is indices; 0: elements */
    int32_t smallest;
    int32_t last_first;  /* 1: of equal elements the last one comes first */
    int32_t first_stays; /* 1: a NaN comes first if it is its line's first element, else last. 0: NaN is the largest */
} mcud_top_k_params;

mcud_kernel mcud_top_k;

#endif
