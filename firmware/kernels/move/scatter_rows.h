/* Writes rows of updates over rows of data, or of a constant, chosen by indices.
 *
 * in       int32_t [count] indices, unless they are constant; [count][...] updates; [rows][...] data, unless filled
 * out      [rows][...]; may be the data
 *
 * A negative index counts from the end; an update whose index is outside is ignored. Updates of one row apply in order.
 */
#ifndef MCUD_SCATTER_ROWS_H
#define MCUD_SCATTER_ROWS_H

#include "mcud.h"

typedef struct {
    const int32_t *indices; /* or NULL */
    int32_t count;
    int32_t rows;
    int32_t row_elements;
    int32_t element;   /* 0: int8_t, 1: int32_t, 2: float */
    int32_t reduction; /* 0: none, 1: add, 2: mul, 3: max, 4: min; bytes are only replaced */
    int32_t filled;    /* 1: there is no data, its elements are `fill` */
    int32_t fill;      /* bits of an element */
} mcud_scatter_rows_params;

mcud_kernel mcud_scatter_rows;

#endif
