/* Sums of products of two int8 activations, each less its zero point. */
#ifndef MCUD_PRODUCT_S8_H
#define MCUD_PRODUCT_S8_H

#include "mcud_simd.h"

/* Lines of a transposed second matrix, or columns of a second matrix that is not transposed, in a block of a
 * product. */
#define MCUD_PRODUCT_LINES 4
#define MCUD_PRODUCT_COLUMNS 16

typedef struct {
    int32_t a_zero_point;
    int32_t b_zero_point;
    int32_t pitch; /* from a line of b to the next one; used for columns only */
} mcud_product_s8;

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_product_s8_mve.h"
#elif defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_product_s8_dsp.h"
#else
#include "mcud_product_s8_c.h"
#endif

/* Writes out[count] from sums[count]; see mcud_quant.h. */
static inline void mcud_product_finish(const int32_t *sums, int32_t count, int32_t multiplier, int32_t shift,
                                       int32_t zero_point, int8_t *out)
{
    for (int32_t i = 0; i < count; i++) {
        out[i] = mcud_saturate_s8(zero_point + mcud_scale(sums[i], multiplier, shift));
    }
}

#endif
