/* Three or two pixels of 16-bit values by two channels of int8 weights: sums of 32 bits.
 *
 * Pixels are expanded once and used for all channels: a group of four values of `pixels` pixels is 2 * pixels words,
 * first (x0, x2) of every pixel, then (x1, x3), the lower half first. A sign extension of every other byte of a word of
 * weights gives the same pairs. A record is int32_t biases of two channels, weights [groups][2][4], a word for four
 * values of a channel, multipliers, and shifts.
 *
 *   mcud_expand_s16      x[groups][4] to one pixel's place among `pixels`
 *   mcud_sum_pixels_s16  sums[pixels][2] += the products of a record; returns the words after its weights
 */
#ifndef MCUD_PIXELS_S16_H
#define MCUD_PIXELS_S16_H

#include "mcud_quant_s16.h"

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_pixels_s16_dsp.h"
#else
#include "mcud_pixels_s16_c.h"
#endif

#endif
