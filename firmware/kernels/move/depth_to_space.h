/* Moves the channels of a pixel to a block of pixels, without output rows before `first_row` and columns before
 * `first_col`.
 *
 * in[0]    [...][...][groups][block_rows][block_cols][run_bytes]
 * out      [...][output_cols][groups][run_bytes]
 */
#ifndef MCUD_DEPTH_TO_SPACE_H
#define MCUD_DEPTH_TO_SPACE_H

#include "mcud.h"

typedef struct {
    int32_t block_rows;
    int32_t block_cols;
    int32_t first_row;
    int32_t first_col;
    int32_t output_cols;
    int32_t groups;
    int32_t run_bytes;
} mcud_depth_to_space_params;

mcud_kernel mcud_depth_to_space;

#endif
