/* Average over windows, int8. Padding adds nothing. The divisor is the number of counted rows times the number of
 * counted columns; the code generator computes a multiplier, which includes it, for each such pair.
 *
 * Rounds once, half to even, before it adds the zero point: with equal scales, means halfway between two integers are
 * common (1 of 4 for a window of 2 x 2). A multiplier that is itself rounded up rounds such means away from zero
 * instead, which is up if both zero points are -128.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows]
 */
#ifndef MCUD_AVGPOOL_S8_H
#define MCUD_AVGPOOL_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *multipliers; /* [rows - least_rows][cols - least_cols] for counted rows and cols; rows of factor_cols */
    mcud_plane_dims dims;
    mcud_window window;
    int32_t counted_top; /* positions that the divisor counts: rows [counted_top, counted_bottom) */
    int32_t counted_left;
    int32_t counted_bottom;
    int32_t counted_right;
    int32_t least_rows; /* counted rows and columns for the first multiplier */
    int32_t least_cols;
    int32_t factor_cols;
    int32_t shift;              /* 1..62 */
    int32_t input_zero_point;   /* -128..127, as the following one */
    int32_t output_zero_point;
} mcud_avgpool_s8_params;

mcud_kernel mcud_avgpool_s8;

#endif
