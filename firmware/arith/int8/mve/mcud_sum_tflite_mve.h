/* mcud_sum_tflite.h by the M-profile Vector Extension: four sums at a time. */
#ifndef MCUD_SUM_TFLITE_MVE_H
#define MCUD_SUM_TFLITE_MVE_H

#include <arm_mve.h>

/* q[v] = (q[v] * multiplier / 2^31, rounded half up, + half) / 2^-shift, whose ties go away from zero; overwrites
 * q[x]. */
#define MCUD_ROUND_TWICE(multiplier, half, shift)                                                            \
    "vqrdmulh.s32 %q[v], %q[v], %q[" multiplier "]\n\t"                                                       \
    "vshr.s32 %q[x], %q[v], #31\n\t"                                                                         \
    "vadd.i32 %q[v], %q[v], %q[x]\n\t"                                                                       \
    "vadd.i32 %q[v], %q[v], %q[" half "]\n\t"                                                                \
    "vshl.s32 %q[v], %[" shift "]\n\t"

static inline void mcud_add_exact(const mcud_exact_sum *by, const int8_t *exact, const int8_t *other, int8_t *out,
                                  int32_t count)
{
    const int32x4_t constant = vdupq_n_s32(by->constant);
    const int32x4_t multiplier = vdupq_n_s32(by->multiplier);
    const int32x4_t half = vdupq_n_s32(by->half);
    const int32x4_t sum_multiplier = vdupq_n_s32(by->sum_multiplier);
    const int32x4_t sum_half = vdupq_n_s32(by->sum_half);
    int32x4_t v;
    int32x4_t x;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vldrb.s32 %q[v], [%[other]], #4\n\t"
                     "vshl.s32 %q[v], %[fraction]\n\t"
                     "vadd.i32 %q[v], %q[v], %q[constant]\n\t"
                     MCUD_ROUND_TWICE("multiplier", "half", "right")
                     "vldrb.s32 %q[x], [%[exact]], #4\n\t"
                     "vshl.i32 %q[x], %q[x], %[half_fraction]\n\t"
                     "vadd.i32 %q[v], %q[v], %q[x]\n\t"
                     MCUD_ROUND_TWICE("sum_multiplier", "sum_half", "sum_right")
                     "vqmovnb.s32 %q[v], %q[v]\n\t"
                     "vqmovnb.s16 %q[v], %q[v]\n\t"
                     "vstrb.32 %q[v], [%[out]], #4\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [exact] "+l"(exact), [other] "+l"(other), [out] "+l"(out), [v] "=&w"(v), [x] "=&w"(x)
                     : [count] "r"(count), [constant] "w"(constant), [multiplier] "w"(multiplier), [half] "w"(half),
                       [sum_multiplier] "w"(sum_multiplier), [sum_half] "w"(sum_half), [fraction] "r"(by->fraction),
                       [half_fraction] "i"(MCUD_SUM_FRACTION - 1), [right] "r"(-by->shift),
                       [sum_right] "r"(-by->sum_shift)
                     : "lr", "memory");
}

#endif
