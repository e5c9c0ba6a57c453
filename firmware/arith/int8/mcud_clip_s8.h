/* The clip that int8 kernels end with. */
#ifndef MCUD_CLIP_S8_H
#define MCUD_CLIP_S8_H

#include "mcud_quant.h"

/* Narrows int8 results to [low, high]; nearly always that is all of int8, and nothing to do. */
static inline void mcud_clip_s8(int8_t *y, int32_t count, int32_t low, int32_t high)
{
    if (low == INT8_MIN && high == INT8_MAX) {
        return;
    }
    for (const int8_t *end = y + count; y < end; y++) {
        *y = (int8_t)mcud_clamp(*y, low, high);
    }
}

#endif
