/* Depthwise convolution, float32, whose weights and bias are tensors that training changes.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * in[1]    float [kernel_rows][kernel_cols][output_channels], one row
 * in[2]    float [output_channels], one row
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * Output channel k reads input channel k / multiplier only. With multiplier 1 eight neighbouring channels are summed at
 * a time, as dwconv2d_f32 does. Padded taps are skipped.
 */
#ifndef MCUD_DWCONV2D_F32_TRAINED_H
#define MCUD_DWCONV2D_F32_TRAINED_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_conv_dims dims;
    mcud_window window;
    int32_t multiplier; /* output channels of each input channel */
    mcud_act_f32 act;
} mcud_dwconv2d_f32_trained_params;

mcud_kernel mcud_dwconv2d_f32_trained;

#endif
