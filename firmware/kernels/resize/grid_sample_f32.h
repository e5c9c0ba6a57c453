/* Samples an image at positions that another tensor states, float.
 *
 * in[0]    float [rows][cols][channels], the image
 * in[1]    float [...][output_cols][2], x and y of each pixel: -1 and 1 are opposite ends of the image
 * out      float [...][output_cols][channels]
 */
#ifndef MCUD_GRID_SAMPLE_F32_H
#define MCUD_GRID_SAMPLE_F32_H

#include "mcud.h"

typedef struct {
    int32_t rows;
    int32_t cols;
    int32_t channels;
    int32_t output_cols;
    int32_t taps; /* neighbours along an axis: 1 nearest, 2 linear, 4 cubic */
    int32_t padding; /* outside the image: 0 zeros, 1 its border, 2 its reflection */
    int32_t align_corners; /* 1: -1 and 1 are centres of the outermost pixels; 0: their outer edges */
} mcud_grid_sample_f32_params;

mcud_kernel mcud_grid_sample_f32;

#endif
