/* The convolution of conv2d_f32_trained.h, for windows of short rows.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * in[1]    float [output_channels][kernel_rows][kernel_cols][input_channels], one row
 * in[2]    float [output_channels], one row
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], float [4][patch_values]
 *
 * Four windows are gathered and multiplied at a time, with zeros for padded taps.
 */
#ifndef MCUD_CONV2D_F32_TRAINED_GATHERED_H
#define MCUD_CONV2D_F32_TRAINED_GATHERED_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_conv_dims dims;
    mcud_window window;
    int32_t patch_values; /* of a window */
    mcud_act_f32 act;
} mcud_conv2d_f32_trained_gathered_params;

mcud_kernel mcud_conv2d_f32_trained_gathered;

#endif
