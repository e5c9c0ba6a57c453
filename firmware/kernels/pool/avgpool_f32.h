/* Average over windows, float32. Padding adds nothing. The divisor is the number of counted rows times the number of
 * counted columns; the code generator computes its reciprocal for each such pair.
 *
 * in[0]    float [input_rows][input_cols][channels]
 * out      float [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows]
 */
#ifndef MCUD_AVGPOOL_F32_H
#define MCUD_AVGPOOL_F32_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const float *factors; /* [rows - least_rows][cols - least_cols] for counted rows and cols; rows of factor_cols */
    mcud_plane_dims dims;
    mcud_window window;
    int32_t counted_top; /* positions that the divisor counts: rows [counted_top, counted_bottom) */
    int32_t counted_left;
    int32_t counted_bottom;
    int32_t counted_right;
    int32_t least_rows; /* counted rows and columns for the first factor */
    int32_t least_cols;
    int32_t factor_cols;
} mcud_avgpool_f32_params;

mcud_kernel mcud_avgpool_f32;

#endif
