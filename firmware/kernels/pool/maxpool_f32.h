/* Maximum over windows, float32. Padding never wins; a window that is all padding gives the least finite float.
 *
 * in[0]    float [input_rows][input_cols][channels]
 * out      float [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows]
 */
#ifndef MCUD_MAXPOOL_F32_H
#define MCUD_MAXPOOL_F32_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_plane_dims dims;
    mcud_window window;
} mcud_maxpool_f32_params;

mcud_kernel mcud_maxpool_f32;

#endif
