/* Winograd's minimal filtering of 3x3 windows with stride 1, exact in integers: tiles of R x 4 results, R 1, 2 or 4.
 *
 * All steps are linear and computed modulo 2^32, on transforms of integers that fit 16 bits. The sums are S times those
 * of the direct convolution, where S is 24, 48 or 576. Multiplied by the inverse of the odd factor of S modulo 2^32,
 * they become 2^s times those, with s = 3, 4 or 6. This fits an int32_t: the code generator checks each layer. With R =
 * 1, three rows of input are transformed along the columns only, and summed up like depth.
 *
 * Two tiles by four channels are multiplied at a time. Layouts:
 *
 *   input    int16_t [positions][rows][depth / 2][2 tiles][2]; positions are R + 2 (1 for R = 1) by 6, rows are 3 for
 *            R = 1, else 1; a pair has channels 4k and 4k + 2, the next one 4k + 1 and 4k + 3
 *   weights  int16_t [groups of 4 channels][positions][rows][depth / 2][4 channels][2]
 *   sums     int32_t [positions][4 channels][2 tiles], before them the work of a transform
 *
 * Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016; points 0, +-1, +-2, infinity.
 */
#ifndef MCUD_WINOGRAD_S8_H
#define MCUD_WINOGRAD_S8_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *packed_weights;
    const int32_t *factors; /* [output channels, filled up to fours]: S * bias, its factors */
    const int8_t *padding;  /* a pixel of zero points */
    mcud_conv_dims dims;    /* input_channels is a multiple of 4 */
    int32_t pad_top;
    int32_t pad_left;
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_winograd_s8_params;

#endif
