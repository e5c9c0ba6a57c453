/* Convolution of 16-bit values by int8 weights: any kernel, stride, dilation, padding, groups; matrix products as well.
 *
 * in[0]    int16_t [input_rows][input_cols][input_channels]
 * out      int16_t [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], int16_t [patch_groups][4]
 *
 * Four output channels are summed up at a time, over all values under a window. A window that is not contiguous, or
 * whose values do not fill the last group, is copied to the scratch. Sums have 32 bits. With `wide` they have 64, and
 * partial sums over `most_groups` groups have 32.
 */
#ifndef MCUD_CONV2D_S16_H
#define MCUD_CONV2D_S16_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups][groups of 4 outputs], see mcud_dot_s16.h */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;  /* input_channels / groups */
    int32_t group_outputs; /* output_channels / groups */
    int32_t patch_groups;  /* groups of four values under a window */
    int32_t wide;          /* 1: sums of 64 bits, biases of two words; 0: of 32, left_shift is 0 */
    int32_t most_groups;
    int32_t piece;         /* 1: a window within the columns is one run, if its rows are adjacent in memory */
    mcud_wide_quant quant;
    mcud_act_s16 act;
} mcud_conv2d_s16_params;

mcud_kernel mcud_conv2d_s16;

#endif
