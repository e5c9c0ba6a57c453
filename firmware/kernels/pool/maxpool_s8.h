/* Maximum over windows, int8. Padding never wins; a window that is all padding gives -128.
 *
 * in[0]    int8 [input_rows][input_cols][channels]
 * out      int8 [rows][output_cols][channels]
 * scratch  uint32_t [kernel_rows]
 */
#ifndef MCUD_MAXPOOL_S8_H
#define MCUD_MAXPOOL_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    mcud_plane_dims dims;
    mcud_window window;
} mcud_maxpool_s8_params;

mcud_kernel mcud_maxpool_s8;

#endif
