/* Copies rows of a table, chosen by indices; elements of any type.
 *
 * in[0]    int32_t [count]: a negative index counts from the end; one outside takes the nearest row
 * in[1]    [rows][...], the table, if `bytes` and `floats` are NULL
 * out      [count][...]
 */
#ifndef MCUD_GATHER_ROWS_H
#define MCUD_GATHER_ROWS_H

#include "mcud.h"

typedef struct {
    const int8_t *bytes;
    const float *floats;
    int32_t rows;
    int32_t row_bytes;
} mcud_gather_rows_params;

mcud_kernel mcud_gather_rows;

#endif
