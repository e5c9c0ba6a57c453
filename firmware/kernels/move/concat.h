/* Concatenation along columns or channels; elements of any size, int8 ones also requantised.
 *
 * in[i]    [rows][runs][run_bytes[i]]
 * out      [rows][runs][out_run_bytes], the inputs' runs in sequence
 */
#ifndef MCUD_CONCAT_H
#define MCUD_CONCAT_H

#include "mcud.h"

typedef struct {
    const int8_t *tables; /* [table_count][256], results for inputs of -128 to 127; or NULL: all inputs are copied */
    const uint32_t *table_of_input; /* [inputs]; table_count: the input is copied; NULL if there are no tables */
    const uint32_t *run_bytes; /* [inputs] */
    int32_t inputs;
    int32_t runs;
    int32_t out_run_bytes;
    int32_t table_count;
} mcud_concat_params;

mcud_kernel mcud_concat;

#endif
