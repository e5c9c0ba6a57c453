/* mcud_product_s8.h in portable C. */
#ifndef MCUD_PRODUCT_S8_C_H
#define MCUD_PRODUCT_S8_C_H

/* sums[4] += a[length] by each of four lines of b */
static inline void mcud_product_lines(const mcud_product_s8 *what, const int8_t *a, const int8_t *const b[4],
                                      int32_t length, int32_t sums[4])
{
    const int32_t a_zero_point = what->a_zero_point;
    int32_t s0 = 0;
    int32_t s1 = 0;
    int32_t s2 = 0;
    int32_t s3 = 0;
    int32_t a_sum = 0;
    for (int32_t i = 0; i < length; i++) {
        const int32_t value = a[i] - a_zero_point;
        s0 += value * b[0][i];
        s1 += value * b[1][i];
        s2 += value * b[2][i];
        s3 += value * b[3][i];
        a_sum += value;
    }
    const int32_t shared = a_sum * what->b_zero_point;
    sums[0] += s0 - shared;
    sums[1] += s1 - shared;
    sums[2] += s2 - shared;
    sums[3] += s3 - shared;
}

/* sums[4] += a[length] by four columns of b[length] */
static inline void mcud_product_four_columns(const mcud_product_s8 *what, const int8_t *a, const int8_t *b,
                                             int32_t length, int32_t sums[4])
{
    const int32_t a_zero_point = what->a_zero_point;
    const int32_t pitch = what->pitch;
    int32_t s0 = 0;
    int32_t s1 = 0;
    int32_t s2 = 0;
    int32_t s3 = 0;
    int32_t a_sum = 0;
    for (const int8_t *end = a + length; a < end; b += pitch) {
        const int32_t value = *a++ - a_zero_point;
        s0 += value * b[0];
        s1 += value * b[1];
        s2 += value * b[2];
        s3 += value * b[3];
        a_sum += value;
    }
    const int32_t shared = a_sum * what->b_zero_point;
    sums[0] += s0 - shared;
    sums[1] += s1 - shared;
    sums[2] += s2 - shared;
    sums[3] += s3 - shared;
}

#include "mcud_product_s8_fours.h"

#endif
