/* Fully connected layer and pointwise convolution, float32, by packed weights of 2, 4 or 8 bits in blocks along the
 * depth: see mcud_blocks_f32.h.
 *
 * in[0]  float [rows][cols][input_channels]
 * out    float [rows][cols][output_channels]
 *
 * A result is its bias, to which the sums of blocks are added in order. Four pixels are multiplied by weights that are
 * widened once, in scratch (512 bytes; none for 4 bits and fewer than four pixels). Results equal those of single
 * pixels bit for bit.
 */
#ifndef MCUD_DENSE_F32_BLOCKS_H
#define MCUD_DENSE_F32_BLOCKS_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *weights;  /* [groups of 4 channels][words] */
    const float *scale;      /* [groups of 4 channels][blocks][4] */
    const int8_t *zero;      /* [groups of 4 channels][blocks][4], or NULL */
    const float *bias;       /* [groups of 4 channels][4], or NULL */
    mcud_pixel_dims dims;
    int32_t block; /* values in a block, a multiple of 4 */
    int32_t bits;
    mcud_act_f32 act;
} mcud_dense_f32_blocks_params;

mcud_kernel mcud_dense_f32_blocks;

#endif
