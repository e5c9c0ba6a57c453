/* mcud_softmax.h by the M-profile Vector Extension. */
#ifndef MCUD_SOFTMAX_MVE_H
#define MCUD_SOFTMAX_MVE_H

#include <arm_mve.h>

/* The largest of x[count] */
static inline int32_t mcud_largest_run(const int8_t *x, int32_t count)
{
    int32_t most = INT8_MIN;
    int8x16_t v;
    __asm__("wlstp.8 lr, %[count], 2f\n"
            "1:\n\t"
            "vldrb.8 %q[v], [%[x]], #16\n\t"
            "vmaxv.s8 %[most], %q[v]\n\t"
            "letp lr, 1b\n"
            "2:"
            : [x] "+l"(x), [most] "+r"(most), [v] "=&w"(v)
            : [count] "r"(count)
            : "lr", "memory");
    return most;
}

/* Computes y[count] from x[count] and returns 1; returns 0 if the values must be computed singly. */
static inline int32_t mcud_softmax_run(const mcud_softmax_group *softmax, const int8_t *x, int8_t *y)
{
    if (softmax->step != 1) {
        return 0;
    }
    const int8_t *in = x;
    const uint32_t *const table = softmax->table;
    const int32x4_t most = vdupq_n_s32(mcud_largest_run(x, softmax->count));
    uint32_t sum = 0;
    int32x4_t v;
    int32x4_t w;
    __asm__("wlstp.32 lr, %[count], 2f\n"
            "1:\n\t"
            "vldrb.s32 %q[v], [%[x]], #4\n\t"
            "vsub.i32 %q[v], %q[most], %q[v]\n\t"
            "vldrw.u32 %q[w], [%[table], %q[v], uxtw #2]\n\t"
            "vaddva.u32 %[sum], %q[w]\n\t"
            "letp lr, 1b\n"
            "2:"
            : [x] "+l"(in), [v] "=&w"(v), [w] "=&w"(w), [sum] "+Te"(sum)
            : [count] "r"(softmax->count), [table] "r"(table), [most] "w"(most)
            : "lr", "memory");
    const uint64_t reciprocal = mcud_reciprocal(sum, table[0]);
    const int32x4_t multiplier = vdupq_n_s32(softmax->multiplier);
    const uint32x4_t low = vdupq_n_u32((uint32_t)reciprocal);
    /* exponential * reciprocal / 2^32, then * multiplier / 2^shift: by the upper halves of two products */
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vldrb.s32 %q[v], [%[x]], #4\n\t"
                     "vsub.i32 %q[v], %q[most], %q[v]\n\t"
                     "vldrw.u32 %q[w], [%[table], %q[v], uxtw #2]\n\t"
                     "vmulh.u32 %q[v], %q[w], %q[low]\n\t"
                     "vmla.s32 %q[v], %q[w], %[high]\n\t"
                     "vmulh.s32 %q[v], %q[v], %q[multiplier]\n\t"
                     "vrshl.s32 %q[v], %[right]\n\t"
                     "vadd.i32 %q[v], %q[v], %[zero]\n\t"
                     "vqmovnb.s32 %q[v], %q[v]\n\t"
                     "vqmovnb.s16 %q[v], %q[v]\n\t"
                     "vstrb.32 %q[v], [%[y]], #4\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [x] "+l"(x), [y] "+l"(y), [v] "=&w"(v), [w] "=&w"(w)
                     : [count] "r"(softmax->count), [table] "r"(table), [most] "w"(most), [low] "w"(low),
                       [high] "r"((uint32_t)(reciprocal >> 32)), [multiplier] "w"(multiplier),
                       [right] "r"(32 - softmax->shift), [zero] "r"(softmax->zero_point)
                     : "lr", "memory");
    return 1;
}

#endif
