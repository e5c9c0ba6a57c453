/* Depthwise convolution, float32, with int8 weights: output channel k reads input channel k / multiplier only.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * Sums one channel at a time; padded taps are skipped. The results equal those of dwconv2d_f32 bit for bit.
 */
#ifndef MCUD_DWCONV2D_F32_S8W_H
#define MCUD_DWCONV2D_F32_S8W_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights; /* [kernel_rows][kernel_cols][output_channels] */
    const float *scale;    /* [output_channels], of the weights */
    const float *bias;     /* [output_channels] */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t multiplier; /* output channels of each input channel */
    mcud_act_f32 act;
} mcud_dwconv2d_f32_s8w_params;

mcud_kernel mcud_dwconv2d_f32_s8w;

#endif
