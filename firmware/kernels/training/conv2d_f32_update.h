/* Weights of a convolution, float32, moved along their gradient: weights - rate * (gradient + factor * weights).
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of its output
 * in[1]    float [input_rows][input_cols][input_channels], input of the convolution
 * in[2]    float [output_channels][kernel_rows][kernel_cols][input_channels], one row
 * in[3]    float [2], the optimizer
 * out      as in[2], and may be its memory
 * scratch  uint32_t [2][output_rows]; by rows also float sums as in[2], unless in_place
 *
 * The gradient of weight (k, r, s, c) is the sum of its products over all pixels. If the operator has one row, its step
 * takes the whole gradient. If it has output_rows rows, a step adds its rows of the gradient to the sums, and the last
 * step stores the result. mcud_updates_f32.h explains optimizer, factor and in_place.
 */
#ifndef MCUD_CONV2D_F32_UPDATE_H
#define MCUD_CONV2D_F32_UPDATE_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_conv_dims dims;
    mcud_window window;
    int32_t output_rows;
    float factor;
    int32_t in_place;
} mcud_conv2d_f32_update_params;

mcud_kernel mcud_conv2d_f32_update;

#endif
