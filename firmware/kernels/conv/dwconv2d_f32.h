/* Depthwise convolution, float32: output channel k reads input channel k / multiplier only.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * With multiplier 1 eight neighbouring channels are summed at a time. Padded taps are skipped.
 */
#ifndef MCUD_DWCONV2D_F32_H
#define MCUD_DWCONV2D_F32_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *weights; /* [kernel_rows][kernel_cols][output_channels] */
    const float *bias;    /* [output_channels] */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t multiplier; /* output channels of each input channel */
    mcud_act_f32 act;
} mcud_dwconv2d_f32_params;

mcud_kernel mcud_dwconv2d_f32;

#endif
