/* Convolution, float32, with int8 weights: any kernel, stride, dilation, padding, groups.
 *
 * in[0]    float [input_rows][input_cols][input_channels]
 * out      float [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows]
 *
 * Reads the windows in place, in blocks of 4 pixels of a row x 4 channels. Pixels beyond whole blocks, and those whose
 * window reaches into the padding, are computed one by one. The results equal those of conv2d_f32 bit for bit.
 */
#ifndef MCUD_CONV2D_F32_S8W_H
#define MCUD_CONV2D_F32_S8W_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int8_t *weights; /* [groups][groups of 4 channels][kernel_rows][kernel_cols][group_inputs][4] */
    const float *scale;    /* [groups][groups of 4 channels][4], of the weights */
    const float *bias;     /* [groups][groups of 4 channels][4] */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;  /* input_channels / groups */
    int32_t group_outputs; /* output_channels / groups */
    int32_t one_run;       /* 1 if the taps of a window's row are contiguous */
    mcud_act_f32 act;
} mcud_conv2d_f32_s8w_params;

mcud_kernel mcud_conv2d_f32_s8w;

#endif
