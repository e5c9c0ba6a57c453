/* Weights of a depthwise convolution, float32, moved along their gradient: weights - rate * (gradient + factor * weights).
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of its output
 * in[1]    float [input_rows][input_cols][input_channels], input of the convolution
 * in[2]    float [kernel_rows][kernel_cols][output_channels], one row
 * in[3]    float [2], the optimizer
 * out      as in[2], and may be its memory
 * scratch  uint32_t [2][output_rows]; by rows also float sums as in[2], unless in_place
 *
 * As conv2d_f32_update, where output channel k reads input channel k / multiplier only.
 */
#ifndef MCUD_DWCONV2D_F32_UPDATE_H
#define MCUD_DWCONV2D_F32_UPDATE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_conv_dims dims;
    mcud_window window;
    int32_t output_rows;
    int32_t multiplier; /* output channels of each input channel */
    float factor;
    int32_t in_place;
} mcud_dwconv2d_f32_update_params;

mcud_kernel mcud_dwconv2d_f32_update;

#endif
