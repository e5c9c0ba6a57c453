/* Mean of all pixels, int8. The input's rows come in blocks: a call adds input rows [first_row, end_row), which lie in
 * one block. Calls come in order of rows, and the last one writes the output. The results equal those of avgpool_s8
 * with one window over the whole input, bit for bit.
 *
 * in[0]    int8 [op->rows][input_cols][channels]
 * out      int8 [1][1][channels]
 * scratch  int32_t [channels], the sums, kept from the first call to the last
 */
#ifndef MCUD_AVGPOOL_S8_BY_ROWS_H
#define MCUD_AVGPOOL_S8_BY_ROWS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    int32_t input_cols;
    int32_t channels;
    int32_t bias;       /* minus the input zero point times the number of pixels */
    mcud_quant quant;
} mcud_avgpool_s8_by_rows_params;

mcud_kernel mcud_avgpool_s8_by_rows;

#endif
