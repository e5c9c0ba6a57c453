/* Fully connected layer, float32, with int8 weights, whose output channels are rows: row r holds channels [r * row_channels,
 * (r + 1) * row_channels). The results equal those of conv2d_f32_1x1 bit for bit.
 *
 * in[0]  float [1][1][input_channels]
 * out    float [op->rows][1][row_channels]
 */
#ifndef MCUD_CONV2D_F32_TO_ROWS_S8W_H
#define MCUD_CONV2D_F32_TO_ROWS_S8W_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights; /* [op->rows][groups of 4 channels][input_channels][4] */
    const float *scale;    /* [op->rows][groups of 4 channels][4], of the weights */
    const float *bias;     /* [op->rows][groups of 4 channels][4] */
    int32_t input_channels;
    int32_t row_channels;
    mcud_act_f32 act;
} mcud_conv2d_f32_to_rows_s8w_params;

mcud_kernel mcud_conv2d_f32_to_rows_s8w;

#endif
