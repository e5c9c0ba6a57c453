/* Vectors of 16 bytes, as the M-profile Vector Extension (Helium) has them: what the kernels named _mve are made of.
 *
 * The portable twin has the same functions and gives the same bits, so that these kernels run on the host as well;
 * other cores are better served by the kernels without vectors.
 */
#ifndef MCUD_VECTOR_H
#define MCUD_VECTOR_H

#include <stdint.h>

/* How sums become results: clamp(zero_point + round(sum * 2^left * multiplier / 2^32), -128, 127). */
typedef struct {
    int32_t left; /* 0 but for scales of 0.5 and more; a sum that overflows saturates */
    int32_t zero_point;
} mcud_vector_finish;

/* A sum of two operands, see add_s8.h. */
typedef struct {
    int32_t a_multiplier;
    int32_t b_multiplier;
    int32_t constant;
    int32_t shift;
    int32_t zero_point;
} mcud_vector_addition;

#if defined(__ARM_FEATURE_MVE)
#include "mcud_vector_mve.h"
#else
#include "mcud_vector_c.h"
#endif

#endif
