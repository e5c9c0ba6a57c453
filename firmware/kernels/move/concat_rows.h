/* Concatenation along rows; elements of any size, int8 ones also requantised.
 *
 * in[i]    [rows[i]][row_bytes]
 * out      [sum of rows][row_bytes]
 */
#ifndef MCUD_CONCAT_ROWS_H
#define MCUD_CONCAT_ROWS_H

#include "mcud.h"

typedef struct {
    const int8_t *tables; /* [n][256], requantisation by q + 128; or NULL: all inputs are copied */
    const uint32_t *table_of_input; /* [inputs], none if it is n; or NULL */
    const uint32_t *rows; /* [inputs] */
    int32_t row_bytes;
    int32_t table_count; /* n */
} mcud_concat_rows_params;

mcud_kernel mcud_concat_rows;

#endif
