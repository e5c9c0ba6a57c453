/* Concatenation along rows; elements of any size, int8 ones also requantised.
 *
 * in[i]    [rows[i]][row_bytes]
 * out      [sum of rows][row_bytes]
 */
#ifndef MCUD_CONCAT_ROWS_H
#define MCUD_CONCAT_ROWS_H

#include "mcud.h"

typedef struct {
    const int8_t *tables; /* [table_count][256], results for inputs of -128 to 127; or NULL: all inputs are copied */
    const uint32_t *table_of_input; /* [inputs]; table_count: the input is copied; NULL if there are no tables */
    const uint32_t *rows; /* [inputs] */
    int32_t row_bytes;
    int32_t table_count;
} mcud_concat_rows_params;

mcud_kernel mcud_concat_rows;

#endif
