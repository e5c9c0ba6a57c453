/* Depthwise convolution by windows of 3x3, int8, without dilation, with a stride of 1 or 2 along the columns.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  int32_t [26 + MCUD_COLUMNS * 6]: an expanded record, expanded columns
 *
 * Of four channels at a time weights and columns of the windows are expanded once, to 16 bits and in the order in which
 * they are multiplied, for up to 12 outputs in a row (6 with a stride of 2).
 */
#ifndef MCUD_DWCONV2D_S8_3X3_H
#define MCUD_DWCONV2D_S8_3X3_H

#include "mcud.h"
#include "mcud_params.h"

enum { MCUD_COLUMNS = 14 };

typedef struct {
    /* [fours of channels]: 4 biases, weights [3 columns][3 rows][4] as bytes, 4 multipliers */
    const int32_t *packed_weights;
    mcud_plane_dims dims;
    mcud_window_steps window;
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_dwconv2d_s8_3x3_params;

mcud_kernel mcud_dwconv2d_s8_3x3;

#endif
