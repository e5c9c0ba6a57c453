/* Gradient of the input of an average over windows, float32, from the gradient of its output.
 *
 * in[0]    float [output_rows][output_cols][output_channels], gradient of the output
 * out      float [rows][input_cols][input_channels]
 *
 * The gradient of an input value is the sum, over the windows that contain it, of the output's gradient times `factor`.
 * The pool has as many channels in its output as in its input.
 */
#ifndef MCUD_AVGPOOL_F32_GRADIENT_H
#define MCUD_AVGPOOL_F32_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_conv_dims dims; /* and window: of the pool */
    mcud_window window;
    int32_t output_rows;
    float factor;
} mcud_avgpool_f32_gradient_params;

mcud_kernel mcud_avgpool_f32_gradient;

#endif
