/* The float32 arithmetic of convolutions whose weights are int8: mcud_simd_f32.h with weights that are widened
 * as they are read. One header of static inline functions for each instruction set, all with the same functions.
 *
 * A weight is the product, rounded to float32, of an integer and the scale of its channel. The results therefore have
 * the bits of mcud_simd_f32.h with float32 weights of these values.
 *
 * Weights are packed in blocks of four channels, [depth][4], scales in blocks [4]; zeros fill the last block.
 *
 *   mcud_add_4x4_s8w  4 pixels, `step` values apart, by 4 channels: sums[4][4]
 *   mcud_add_1x4_s8w  1 pixel by 4 channels: sums[4]
 *   mcud_add_1x8_s8w  1 pixel by 8 channels, two blocks of weights: sums[8]
 */
#ifndef MCUD_SIMD_S8W_H
#define MCUD_SIMD_S8W_H

#include <stdint.h>

#include "mcud_simd_f32.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && defined(__OPTIMIZE__)
#include "mcud_simd_s8w_mve.h"
#elif defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__OPTIMIZE__)
#include "mcud_simd_s8w_vfp.h"
#else
#include "mcud_simd_s8w_c.h"
#endif

#endif
