/* The index of the maximum of each window, in the model's order of the image.
 *
 * in[0]    [input_rows][input_cols][channels]
 * out      int32_t [rows][output_cols][channels]; the first of equal elements
 */
#ifndef MCUD_MAXPOOL_INDICES_H
#define MCUD_MAXPOOL_INDICES_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_plane_dims dims;
    mcud_window window;
    int32_t row_step; /* this and the following: distances of indices in the model's order */
    int32_t col_step;
    int32_t channel_step;
    int32_t element; /* 0: int8_t, 1: int32_t, 2: float */
} mcud_maxpool_indices_params;

mcud_kernel mcud_maxpool_indices;

#endif
