/* Arithmetic that depends on the instruction set: one header of static inline functions for each instruction set, all
 * with the same functions and the same bits.
 *
 * Convolutions read their constants as records, in the order of their use: int32_t biases of two or four channels, with
 * the input's zero point folded in; int8_t weights; int32_t multipliers. One function computes the sums of records,
 * requantises them, writes the results and returns the next record:
 *
 *   mcud_records_3x2, _2x2, _1x2  3, 2 or 1 pixels by 2 channels a record; weights [groups][2][4]
 *   mcud_records_1x4              1 pixel by 4 channels a record; weights [groups][4][4]
 *   mcud_sum_1x4                  the same sums alone
 *   mcud_group_1x1                a group of 1 pixel and 1 channel; weights [4]
 *   mcud_record_taps              4 channels of a depthwise window; weights [taps][4]
 *   mcud_sum_taps                 the same sums alone
 *
 * For several records, `channels` fill the last record and are not 0.
 *
 * A group is four values along the depth; weights after the depth are 0. For 3, 2 and 1 by 2, pixels are expanded to 16
 * bits once, and used for all channels: a group of `pixels` pixels is 2 * pixels words, first (x0, x2) of every pixel,
 * then (x1, x3), the lower half first. A sign extension of every other byte of a word of weights gives the same pairs,
 * so that nothing has to be paired at run time.
 *
 * Products are summed up to ends[1]; from ends[0] to ends[1] there is a multiple of four groups, of eight for 1x4.
 * `ends` and `finish` must be variables of the caller.
 */
#ifndef MCUD_SIMD_H
#define MCUD_SIMD_H

#include <stdint.h>

/* A kernel that rounds results twice, as TFLite does, defines MCUD_TWICE: its records have multipliers of all their
 * channels, then powers of two of all. MCUD_RESULT_S8 converts a sum to a result by its factor, and with MCUD_TWICE by
 * a second factor `step` words later. Records for vectors, whose multiplications double, have half the multiplier,
 * which has no sign. */
#if defined(MCUD_TWICE)
#define MCUD_FACTORS 2
#define MCUD_IF_TWICE(text) text
#define MCUD_RESULT_S8(sum, factor, step, finish)                                                            \
    mcud_requantize_s8(mcud_scale_once(sum, (factor)[0]), (factor)[step], finish)
#define MCUD_RESULT_BY_VECTORS(sum, factor, step, finish)                                                    \
    mcud_requantize_s8(mcud_scale_once(sum, (int32_t)((uint32_t)(factor)[0] << 1)), (factor)[step], finish)
#else
#define MCUD_FACTORS 1
#define MCUD_IF_TWICE(text)
#define MCUD_RESULT_S8(sum, factor, step, finish) mcud_requantize_s8(sum, (factor)[0], finish)
#define MCUD_RESULT_BY_VECTORS MCUD_RESULT_S8
#endif

/* From sums to results: clamp(zero_point + sum * 2^left * multiplier / 2^32, -128, 127), rounded half up. Rounded twice,
 * clamp(zero_point + (sum * (2^32 + multiplier) / 2^32) * 2^left * power / 2^32, -128, 127), both rounded half up. A
 * power that is odd rounds halves away from zero, since it adds the sign's share. An even one may do so, too: negative
 * results are clipped then. A power of -2^31 belongs to the opposite of a sum. */
typedef struct {
    int32_t zero_point;
    int32_t left;  /* the shifted sum saturates; see mcud_channel_quant */
    int32_t pitch; /* from a pixel's results to the next one's */
} mcud_finish_s8;

/* Without optimisation there are too few registers for the blocks. */
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_simd_dsp.h"
#else
#include "mcud_simd_c.h"
#endif

#endif
