/* The largest of int8 values. */
#ifndef MCUD_LARGEST_H
#define MCUD_LARGEST_H

#include "mcud_simd.h"

/* The largest of x[count], `step` apart. */
static inline int32_t mcud_largest(const int8_t *x, int32_t count, int32_t step)
{
    int32_t most = INT8_MIN;
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
    if (step == 1) {
        uint32_t bytes = 0x80808080u;
        for (; count >= 4; count -= 4, x += 4) {
            bytes = mcud_max_bytes(bytes, (uint32_t)mcud_load_word(x));
        }
        for (int32_t i = 0; i < 4; i++, bytes >>= 8) {
            most = (int8_t)bytes > most ? (int8_t)bytes : most;
        }
    }
#endif
    for (; count > 0; count--, x += step) {
        most = *x > most ? *x : most;
    }
    return most;
}

#endif
