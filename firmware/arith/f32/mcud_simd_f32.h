/* The float32 arithmetic of convolutions: one header of static inline functions for each instruction set,
 * all with the same functions.
 *
 * Every result is its bias, then its products in order of depth: the same bits in any block and for any cut. If
 * MCUD_FUSES_F32 is 1, a fused multiply-add rounds once, with the same bits on all such machines and on the host, whose
 * fmaf() is exact. Else a product is rounded before it is added. This is the case where floats are software, and
 * on Cortex-M4: its fused multiply-add takes 3 cycles, a multiplication and an addition 1 each.
 *
 * Weights are packed in blocks of four channels, [depth][4]; zeros fill the last block.
 *
 *   mcud_add_4x4_f32       4 pixels, `step` values apart, by 4 channels: sums[4][4]
 *   mcud_add_1x4_f32       1 pixel by 4 channels: sums[4]
 *   mcud_raised_1x4_f32    1 pixel by 4 channels, from their biases: results y[4], clamped from below
 *   mcud_raised_1x8_f32    1 pixel by 8 channels, two blocks of weights: results y[8], which may be the biases
 *   mcud_add_window_8_f32  8 channels of a depthwise window: sums[8]
 *   mcud_add_lines_8_f32   8 columns of a matrix whose lines are not packed: sums[8]
 *   mcud_clamp_4_f32       4 sums to results, clamped
 */
#ifndef MCUD_SIMD_F32_H
#define MCUD_SIMD_F32_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "mcud_clamp_f32.h"
#include "mcud_config.h"

/* Whether a product is rounded with its sum. Compilers define the same for Cortex-M4 as for Cortex-M7, so
 * mcud_config.h says where it is not. */
#ifndef MCUD_FUSES_F32
#if (defined(__arm__) && !defined(__ARM_FEATURE_FMA)) || (defined(__riscv) && !defined(__riscv_flen))
#define MCUD_FUSES_F32 0
#else
#define MCUD_FUSES_F32 1
#endif
#endif

/* sum + a * b */
static inline float mcud_mac_f32(float a, float b, float sum)
{
#if MCUD_FUSES_F32
    return fmaf(a, b, sum);
#else
    return sum + a * b;
#endif
}

/* The taps of a depthwise window: some rows of the input, and the same of the weights. Pitches are in values. */
typedef struct {
    const uint8_t *memory;   /* of the input, plus the bytes from the start of a row to its first tap */
    const uint32_t *offsets; /* of these rows */
    int32_t rows;
    int32_t count;   /* of taps in a row */
    int32_t x_pitch; /* from one tap to the next one */
    int32_t w_pitch;
    int32_t w_row_pitch; /* from one row to the next one */
} mcud_window_taps_f32;

/* Where the sums of a pixel's channels begin, and the least result: -infinity where there is no clip. */
typedef struct {
    const float *bias;
    float low;
} mcud_base_f32;

/* What assembler for Arm's FPU may change. */
#define MCUD_ALL_FLOATS                                                                                      \
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15",    \
        "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29",    \
        "s30", "s31"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && defined(__OPTIMIZE__)
#include "mcud_simd_f32_mve.h"
#else

#if defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__OPTIMIZE__)
#include "mcud_simd_f32_vfp.h"
#else
#include "mcud_simd_f32_c.h"
#endif

/* Channels [channel, channel + 8) of a window; w are the weights of its first tap and of these channels. */
static inline void mcud_add_window_8_f32(const mcud_window_taps_f32 *taps, int32_t channel, const float *w,
                                         float sums[8])
{
    for (int32_t r = 0; r < taps->rows; r++, w += taps->w_row_pitch) {
        const void *row = taps->memory + taps->offsets[r];
        mcud_add_taps_8_f32((const float *)row + channel, w, taps, sums);
    }
}

#endif

#endif
