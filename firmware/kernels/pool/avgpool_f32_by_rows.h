/* Mean of all pixels, float32. The input's rows come in blocks: a call adds input rows [first_row, end_row), which lie
 * in one block. Calls come in order of rows, and the last one writes the output. The results equal those of avgpool_f32
 * with one window over the whole input, bit for bit.
 *
 * in[0]    float [op->rows][input_cols][channels]
 * out      float [1][1][channels]
 * scratch  float [channels], the sums, kept from the first call to the last
 */
#ifndef MCUD_AVGPOOL_F32_BY_ROWS_H
#define MCUD_AVGPOOL_F32_BY_ROWS_H

#include "mcud.h"

typedef struct {
    int32_t input_cols;
    int32_t channels;
    float factor; /* 1 / number of pixels */
} mcud_avgpool_f32_by_rows_params;

mcud_kernel mcud_avgpool_f32_by_rows;

#endif
