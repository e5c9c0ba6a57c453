/* Convolution whose kernel is as large as the input, float32. The input's rows come in blocks: a call adds the products
 * of input rows [first_row, end_row), which lie in one block. Calls come in order of rows, and the last one writes the
 * output. The results equal those of conv2d_f32_full bit for bit.
 *
 * in[0]    float [op->rows][row_values]
 * out      float [1][1][output_channels]
 * scratch  float [groups of 4 channels][4], the sums, kept from the first call to the last
 */
#ifndef MCUD_CONV2D_F32_BY_ROWS_H
#define MCUD_CONV2D_F32_BY_ROWS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *weights; /* [groups of 4 channels][op->rows][row_values][4] */
    const float *bias;    /* [groups of 4 channels][4] */
    int32_t row_values;   /* input columns * input channels */
    int32_t output_channels;
    mcud_act_f32 act;
} mcud_conv2d_f32_by_rows_params;

mcud_kernel mcud_conv2d_f32_by_rows;

#endif
