/* Gradient of the input of a maximum over windows, float32, from the gradient of its output.
 *
 * in[0]    float [output_rows][output_cols][channels], gradient of the output
 * in[1]    uint8_t [output_rows][output_cols][channels], the taps of maxpool_f32_taps; a tap outside the window
 *          or the input adds nothing
 * out      float [rows][input_cols][channels]
 */
#ifndef MCUD_MAXPOOL_F32_GRADIENT_H
#define MCUD_MAXPOOL_F32_GRADIENT_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_plane_dims dims; /* and window: of the pool */
    mcud_window window;
    int32_t output_rows;
} mcud_maxpool_f32_gradient_params;

mcud_kernel mcud_maxpool_f32_gradient;

#endif
