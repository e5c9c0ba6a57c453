/* Which tap of each window is the maximum, float32 to bytes: kernel_cols times its row plus its column.
 *
 * in[0]    float [input_rows][input_cols][channels]
 * out      uint8_t [rows][output_cols][channels]; the first of equal values counts, padding never
 * scratch  uint32_t [kernel_rows]
 */
#ifndef MCUD_MAXPOOL_F32_TAPS_H
#define MCUD_MAXPOOL_F32_TAPS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_plane_dims dims;
    mcud_window window; /* of at most 256 taps, at least one of them inside the input */
} mcud_maxpool_f32_taps_params;

mcud_kernel mcud_maxpool_f32_taps;

#endif
