/* Divides regions of an image into bins. A result is the mean, or the maximum, of the samples in a bin, each of which
 * is interpolated between four elements.
 *
 * in       float [input_rows][input_cols][channels] image; [regions][4] x1, y1, x2, y2, unless they are constant
 * out      float [regions * bin_rows][bin_cols][channels]
 *
 * Samples more than one element outside count as 0. A bin has at most twice as many samples along a side as the
 * image has elements.
 */
#ifndef MCUD_ROI_ALIGN_F32_H
#define MCUD_ROI_ALIGN_F32_H

#include "mcud.h"

typedef struct {
    const float *regions; /* or NULL */
    int32_t input_rows;
    int32_t input_cols;
    int32_t channels;
    int32_t bin_rows;
    int32_t bin_cols;
    int32_t samples; /* along each side of a bin; 0: the number of elements that the bin covers */
    int32_t largest; /* 1: the largest product of element and weight; 0: the mean over samples of sums of products */
    int32_t shrunk;  /* 1: regions may be smaller than an element */
    float scale;
    float offset;
} mcud_roi_align_f32_params;

mcud_kernel mcud_roi_align_f32;

#endif
