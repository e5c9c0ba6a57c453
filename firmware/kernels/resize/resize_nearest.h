/* Nearest neighbour by tables of positions; elements of any size, int8 ones also requantised.
 *
 * in[0]    [...][...][run_bytes]
 * out      [...][out_cols][run_bytes]
 */
#ifndef MCUD_RESIZE_NEAREST_H
#define MCUD_RESIZE_NEAREST_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows; /* the input row of each output row */
    const uint16_t *cols; /* [out_cols] */
    const int8_t *table; /* [256], results for inputs of -128 to 127; or NULL: copied */
    int32_t out_cols;
    int32_t run_bytes; /* a pixel's channels */
} mcud_resize_nearest_params;

mcud_kernel mcud_resize_nearest;

#endif
