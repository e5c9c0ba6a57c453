/* Sums of products of float32 lines that are not packed: weights that training changes, and gradients. */
#ifndef MCUD_LINES_F32_H
#define MCUD_LINES_F32_H

#include <stdint.h>
#include <string.h>

#include "mcud_params.h"
#include "mcud_simd_f32.h"

/* Returns sum + x[values] . w[values]. */
static inline float mcud_add_line_f32(const float *x, const float *w, int32_t values, float sum)
{
    for (const float *const end = x + values; x != end; x++, w++) {
        sum = mcud_mac_f32(*x, *w, sum);
    }
    return sum;
}

/* The terms of a sum over lines: their number, and the values from a term to the next one. */
typedef struct {
    int32_t count; /* of terms */
    int32_t x_pitch;
    int32_t w_pitch;
} mcud_terms_f32;

/* sums[j] += the sum of x[i * x_pitch] * w[i * w_pitch + j] over all terms i, for j from 0 to 3. */
static inline void mcud_add_terms_4_f32(const float *x, const float *w, const mcud_terms_f32 *terms,
                                        float sums[4])
{
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    float d = sums[3];
    for (int32_t i = 0; i < terms->count; i++, x += terms->x_pitch, w += terms->w_pitch) {
        a = mcud_mac_f32(*x, w[0], a);
        b = mcud_mac_f32(*x, w[1], b);
        c = mcud_mac_f32(*x, w[2], c);
        d = mcud_mac_f32(*x, w[3], d);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* Returns sum + the sum of x[i * x_pitch] * w[i * w_pitch] over all terms i. */
static inline float mcud_add_terms_f32(const float *x, const float *w, const mcud_terms_f32 *terms, float sum)
{
    for (int32_t i = 0; i < terms->count; i++, x += terms->x_pitch, w += terms->w_pitch) {
        sum = mcud_mac_f32(*x, *w, sum);
    }
    return sum;
}

#endif
