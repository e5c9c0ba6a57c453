/* Depthwise convolution of 16-bit values by int8 weights: one filter for each channel, sums of 32 bits.
 *
 * in[0]    int16_t [input_rows][input_cols][channels]
 * out      int16_t [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows], room for kernel_rows * kernel_cols + 1 pointers
 */
#ifndef MCUD_DWCONV2D_S16_H
#define MCUD_DWCONV2D_S16_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups of 4 channels], see mcud_dot_s16.h */
    const int16_t *padding;        /* [channels], zeros */
    mcud_plane_dims dims;
    mcud_window window;
    mcud_wide_quant quant;
    mcud_act_s16 act;
} mcud_dwconv2d_s16_params;

mcud_kernel mcud_dwconv2d_s16;

#endif
