/* The clip that int8 kernels end with. */
#ifndef MCUD_CLIP_S8_H
#define MCUD_CLIP_S8_H

#include "mcud_quant.h"
#include "mcud_rvv.h"

/* Narrows int8 results to [low, high]; nearly always that is all of int8, and nothing to do. */
static inline void mcud_clip_s8(int8_t *y, int32_t count, int32_t low, int32_t high)
{
    if (low == INT8_MIN && high == INT8_MAX) {
        return;
    }
#if MCUD_RVV
    int32_t vl;
    for (; count > 0; count -= vl, y += vl) {
        __asm__ volatile("vsetvli %[vl], %[count], e8, m8, ta, ma\n\t"
                         "vle8.v v0, (%[y])\n\t"
                         "vmax.vx v0, v0, %[low]\n\t"
                         "vmin.vx v0, v0, %[high]\n\t"
                         "vse8.v v0, (%[y])"
                         : [vl] "=&r"(vl)
                         : [count] "r"(count), [y] "r"(y), [low] "r"(low), [high] "r"(high)
                         : MCUD_RVV_CHANGED);
    }
#else
    for (const int8_t *end = y + count; y < end; y++) {
        *y = (int8_t)mcud_clamp(*y, low, high);
    }
#endif
}

#endif
