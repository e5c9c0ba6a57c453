/* Depthwise convolution, int8: every channel has its own kernel.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows], then pointers [kernel_rows * kernel_cols], aligned
 *
 * Four neighbouring channels are summed at a time, two taps at a time. The kernel finds the taps of a window once for
 * all pixels of a row whose windows are inside the input, and once for each other pixel.
 */
#ifndef MCUD_DWCONV2D_S8_H
#define MCUD_DWCONV2D_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 channels], see mcud_simd.h */
    const int8_t *padding;  /* [channels], all the input's zero point */
    mcud_plane_dims dims;
    mcud_window window;
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_dwconv2d_s8_params;

mcud_kernel mcud_dwconv2d_s8;

#endif
