/* A pixel, read in place, times int8 weights of eight channels at a time. A half word has the weights of two channels.
 *
 * A half word is a + 256 b, with the weights a and b of an even and an odd channel. Sums of products with half words
 * are A + 256 B; those with their lower bytes, sign-extended, are A. All is computed modulo 2^32, and B fits 24 bits:
 * the code generator has checked the layer. So a weight costs a multiplication and half a sign extension.
 *
 * A record has for four pairs of channels int32_t bias a + 256 * bias b, then the four biases a. Weights follow as
 * words [groups][2][4 pairs], for values 0 and 2 of a group of four, then for values 1 and 3. Last are the multipliers
 * of the eight channels. */
#ifndef MCUD_DUAL_S8_H
#define MCUD_DUAL_S8_H

#include "mcud_simd.h"

enum { MCUD_DUAL_CHANNELS = 8 };

typedef struct {
    int32_t zero_point;
    const int8_t *x_end; /* a multiple of 4 after x */
    int8_t *y_end;       /* a multiple of 8 after y */
} mcud_dual_s8;

/* mcud_multiply_dual multiplies x with the records from `record` on to y; returns the record after the used ones. */
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#include "mcud_dual_dsp.h"
#else
#include "mcud_dual_c.h"
#endif

#endif
