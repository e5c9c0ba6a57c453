/* Maximum of 16-bit values under windows.
 *
 * in[0]    int16_t [input_rows][input_cols][channels]
 * out      int16_t [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows]
 */
#ifndef MCUD_MAXPOOL_S16_H
#define MCUD_MAXPOOL_S16_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_plane_dims dims;
    mcud_window window;
} mcud_maxpool_s16_params;

mcud_kernel mcud_maxpool_s16;

#endif
