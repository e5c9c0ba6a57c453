/* Convolution, int8: any kernel, stride, dilation, padding, groups.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], int16_t [patch_groups][4][most_pixels]: windows, expanded; if row_runs
 *          is 1 and input_channels is not a multiple of 4, then int8 [run_values]
 *
 * In the input, a row of a window is `row_runs` contiguous runs of values: one, or one for each tap if taps are apart.
 * The kernel expands each run to int16, filled up to groups of four, and padding as the input's zero point. Then it
 * multiplies two or three pixels at a time.
 */
#ifndef MCUD_CONV2D_S8_H
#define MCUD_CONV2D_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups][pairs of a group's outputs], see mcud_simd.h */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;  /* input_channels / groups */
    int32_t group_outputs; /* output_channels / groups */
    int32_t row_runs;      /* 1 or kernel_cols */
    int32_t run_values;
    int32_t patch_groups;     /* kernel_rows * row_runs * (run_values / 4, rounded up) */
    int32_t most_pixels;      /* multiplied at a time: 2, or 3 in rows of a multiple of 3 */
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_params;

mcud_kernel mcud_conv2d_s8;

#endif
