/* Mean of 16-bit values under windows, without padding; halves round away from zero.
 *
 * in[0]    int16_t [input_rows][input_cols][channels]
 * out      int16_t [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows]
 */
#ifndef MCUD_AVGPOOL_S16_H
#define MCUD_AVGPOOL_S16_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_plane_dims dims;
    mcud_window window;
} mcud_avgpool_s16_params;

mcud_kernel mcud_avgpool_s16;

#endif
