/* Convolution whose kernel is as large as the input, float32, with int8 weights, the input's rows coming in blocks. A call
 * adds the products of input rows [first_row, end_row), which lie in one block; the calls come in order of rows,
 * and the last one writes the output. The bits are those of conv2d_f32_full_s8w.
 *
 * in[0]    float [op->rows][row_values]
 * out      float [1][1][output_channels]
 * scratch  float [fours of channels][4], the sums, kept from the first call to the last
 */
#ifndef MCUD_CONV2D_F32_BY_ROWS_S8W_H
#define MCUD_CONV2D_F32_BY_ROWS_S8W_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights; /* [fours of channels][op->rows][row_values][4] */
    const float *scale;    /* [fours of channels][4], of the weights */
    const float *bias;     /* [fours of channels][4] */
    int32_t row_values;    /* input columns * input channels */
    int32_t output_channels;
    mcud_act_f32 act;
} mcud_conv2d_f32_by_rows_s8w_params;

mcud_kernel mcud_conv2d_f32_by_rows_s8w;

#endif
