/* Depthwise convolution by windows of up to 64 bytes, int8, by vectors, without dilation.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  int8_t [min(channels, 16)][line]: the columns of channels, see mcud_lines_s8.h
 *
 * For 16 channels at a time, it writes the columns under `most_outputs` outputs of a row, or of two rows with a stride of
 * 1, to lines. The last part of a row ends where the row does.
 */
#ifndef MCUD_DWCONV2D_S8_LINES_MVE_H
#define MCUD_DWCONV2D_S8_LINES_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [channels] records, see mcud_lines_s8.h */
    const int8_t *padding;         /* [channels], all the input's zero point */
    mcud_plane_dims dims;          /* channels are even */
    mcud_window_steps window;
    int32_t kernel_rows;
    int32_t kernel_cols;
    int32_t height;       /* rows of a column in a line, even */
    int32_t rows;         /* of outputs from the same lines, 1 or 2 */
    int32_t vectors;      /* of a window, 2 or 4 */
    int32_t most_outputs; /* 4..output_cols */
    int32_t line;         /* bytes from a channel's line to the next one's */
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_dwconv2d_s8_lines_mve_params;

mcud_kernel mcud_dwconv2d_s8_lines_mve;

#endif
