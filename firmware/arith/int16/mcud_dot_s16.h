/* 16-bit values times int8 weights: the core of the convolutions of int16 activations.
 *
 * A record is the constants of four output channels: int32_t biases; weights [groups][4][4], a word for four values of
 * a channel; multipliers; shifts. A group is four values along the depth; weights after the depth are 0. Biases of sums
 * of more than 32 bits have two words, the lower ones of all four channels first.
 *
 *   mcud_dot_fours_s16  sums[4] += x[4 * groups] by the weights of four channels; returns the words after them
 *   mcud_dot_taps_s16   sums[4] += four channels of a depthwise window; weights are those of mcud_record_taps
 */
#ifndef MCUD_DOT_S16_H
#define MCUD_DOT_S16_H

#include "mcud_quant_s16.h"

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_dot_s16_dsp.h"
#else
#include "mcud_dot_s16_c.h"
#endif

#endif
