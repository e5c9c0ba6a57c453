/* Fully connected layer, int8, whose output channels are rows: row r holds channels [r * row_channels,
 * (r + 1) * row_channels). The results equal those of conv2d_s8_full bit for bit.
 *
 * in[0]  int8 [1][1][input_channels]
 * out    int8 [op->rows][1][row_channels]
 */
#ifndef MCUD_CONV2D_S8_TO_ROWS_H
#define MCUD_CONV2D_S8_TO_ROWS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [op->rows][groups of 4 row_channels, then single ones], see mcud_dot_row_s8.h */
    int32_t input_channels;
    int32_t row_channels;
    int32_t row_words;         /* of a row's records */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_to_rows_params;

mcud_kernel mcud_conv2d_s8_to_rows;

#endif
