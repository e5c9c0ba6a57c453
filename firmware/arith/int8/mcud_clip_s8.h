/* The clip that int8 kernels end with. */
#ifndef MCUD_CLIP_S8_H
#define MCUD_CLIP_S8_H

#include "mcud_quant.h"
#include "mcud_rvv.h"

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include <arm_mve.h>
#endif

/* Narrows int8 results to [low, high]; nearly always that is all of int8, and nothing to do. */
static inline void mcud_clip_s8(int8_t *y, int32_t count, int32_t low, int32_t high)
{
    if (low == INT8_MIN && high == INT8_MAX) {
        return;
    }
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
    const int8x16_t least = vdupq_n_s8((int8_t)low);
    const int8x16_t most = vdupq_n_s8((int8_t)high);
    int8x16_t v;
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vldrb.8 %q[v], [%[y]]\n\t"
                     "vmax.s8 %q[v], %q[v], %q[least]\n\t"
                     "vmin.s8 %q[v], %q[v], %q[most]\n\t"
                     "vstrb.8 %q[v], [%[y]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [y] "+r"(y), [v] "=&w"(v)
                     : [count] "r"(count), [least] "w"(least), [most] "w"(most)
                     : "lr", "memory");
#elif MCUD_RVV
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
