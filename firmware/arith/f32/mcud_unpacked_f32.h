/* Float32 sums of products of pixels and lines of weights that are not packed: weights that training changes.
 *
 * One header of static inline functions for each instruction set, both with the same functions and the bits
 * of mcud_simd_f32.h.
 *
 *   mcud_add_unpacked_2x4_f32  2 pixels by 4 lines: sums[2][4]
 *   mcud_add_unpacked_1x4_f32  1 pixel by 4 lines: sums[4]
 */
#ifndef MCUD_UNPACKED_F32_H
#define MCUD_UNPACKED_F32_H

#include <stdint.h>

#include "mcud_simd_f32.h"

/* Values from a pixel to the next one, and from a line to the next one. */
typedef struct {
    int32_t pixels;
    int32_t lines;
} mcud_pitches_f32;

#if defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__OPTIMIZE__)
#include "mcud_unpacked_f32_vfp.h"
#else
#include "mcud_unpacked_f32_c.h"
#endif

#endif
