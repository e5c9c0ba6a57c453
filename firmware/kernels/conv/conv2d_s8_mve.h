/* conv2d_s8 by vectors.
 *
 * in[0]    int8 [input_rows][input_cols][input_channels]
 * out      int8 [rows][output_cols][output_channels]
 * scratch  uint32_t [kernel_rows], int8_t [pixels][patch_values]: windows, gathered; then int8_t [15], read without effect
 */
#ifndef MCUD_CONV2D_S8_MVE_H
#define MCUD_CONV2D_S8_MVE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights; /* [groups][groups of 4 outputs], see mcud_dot_vector_s8.h */
    mcud_conv_dims dims;
    mcud_window window;
    int32_t groups;
    int32_t group_inputs;     /* input_channels / groups */
    int32_t group_outputs;    /* output_channels / groups */
    int32_t patch_values;     /* kernel_rows * kernel_cols * group_inputs */
    int32_t pixels;           /* gathered at a time */
    int32_t row_values;       /* kernel_cols * group_inputs */
    int32_t group_words;      /* of the records of one group */
    int32_t in_runs;          /* 1 if the taps of a window's row lie side by side in the input */
    int32_t first_inside;     /* with in_runs, output columns [first_inside, end_inside) have no padding */
    int32_t end_inside;
    int32_t is_column;        /* 1 if a row has one window, and its taps inside the input are contiguous there */
    int32_t input_zero_point; /* -128..127 */
    mcud_channel_quant quant;
    mcud_act_s8 act;
} mcud_conv2d_s8_mve_params;

mcud_kernel mcud_conv2d_s8_mve;

#endif
