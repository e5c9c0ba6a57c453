/* Fully connected layer, int8, whose output channels are rows: row r holds channels [r * row_channels,
 * (r + 1) * row_channels). The bits are those of conv2d_s8_1x1.
 *
 * in[0]  int8 [1][1][input_channels]
 * out    int8 [op->rows][1][row_channels]
 */
#ifndef MCUD_CONV2D_S8_TO_ROWS_H
#define MCUD_CONV2D_S8_TO_ROWS_H

#include "mcud.h"

typedef struct {
    const int8_t *weights;      /* [op->rows * row_channels][input_channels] */
    const int32_t *bias;        /* [op->rows * row_channels], minus input zero point times the sum of the weights */
    const int32_t *multipliers; /* [op->rows * row_channels] */
    int32_t input_channels;
    int32_t row_channels;
    int32_t shift;            /* 1..62 */
    int32_t input_zero_point; /* -128..127, as the following ones */
    int32_t output_zero_point;
    int32_t low;
    int32_t high;
} mcud_conv2d_s8_to_rows_params;

mcud_kernel mcud_conv2d_s8_to_rows;

#endif
