/* Convolution, float32, whose weights and bias are tensors that training changes.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * in[1]    float [output_channels][kernel_rows][kernel_cols][input_channels], one row
 * in[2]    float [output_channels], one row
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * Computes two pixels whose windows have no padded columns, and four output channels, at a time; padded taps are
 * skipped.
 */
#ifndef MCUD_CONV2D_F32_TRAINED_H
#define MCUD_CONV2D_F32_TRAINED_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_conv_dims dims;
    mcud_window window;
    int32_t rows_join; /* 1: a pixel reads one input pixel, so contiguous rows are one line of pixels */
    mcud_act_f32 act;
} mcud_conv2d_f32_trained_params;

mcud_kernel mcud_conv2d_f32_trained;

#endif
