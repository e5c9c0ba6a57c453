/* The arithmetic that instruction sets do differently: one header of static inline functions for each, all
 * with the same functions and the same bits.
 *
 * Matrices are multiplied in groups of four values along their depth. Activations are expanded to 16 bits for
 * blocks of PIXELS pixels: a group is 2 * PIXELS words, first (x0, x2) of every pixel, then (x1, x3), the
 * lower half first. A sign extension of every other byte of a word of weights gives the same pairs, so that
 * nothing has to be paired at run time. Weights behind the depth are 0. Products are
 * summed up to ends[1]; as many groups as a multiple of four lie between ends[0] and there. What is returned is the
 * weights behind those used.
 */
#ifndef MCUD_SIMD_H
#define MCUD_SIMD_H

#if defined(__ARM_FEATURE_DSP)
#include "mcud_simd_dsp.h"
#else
#include "mcud_simd_c.h"
#endif

#endif
