/* mcud_vector.h by intrinsics of the M-profile Vector Extension. */
#ifndef MCUD_VECTOR_MVE_H
#define MCUD_VECTOR_MVE_H

#include <arm_mve.h>

#include "mcud_taps_mve.h"

/* to[bytes] = from[bytes] */
static inline void mcud_vector_copy(void *to, const void *from, int32_t bytes)
{
    int8x16_t v;
    __asm__ volatile("wlstp.8 lr, %[bytes], 2f\n"
                     "1:\n\t"
                     "vldrb.8 %q[v], [%[from]], #16\n\t"
                     "vstrb.8 %q[v], [%[to]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [from] "+r"(from), [v] "=&w"(v)
                     : [bytes] "r"(bytes)
                     : "lr", "memory");
}

/* to[windows][rows][bytes] from memory + offsets[rows], windows being `step` bytes apart; none of them is 0. */
static inline void mcud_vector_gather(int8_t *to, const uint8_t *memory, int32_t step, int32_t windows,
                                      const uint32_t *offsets, int32_t rows, int32_t bytes)
{
    const uint32_t *const end = offsets + rows;
    const uint32_t *next;
    const uint8_t *from;
    int8_t *y;
    int8x16_t v;
    __asm__ volatile("1:\n\t"
                     "mov %[next], %[offsets]\n"
                     "2:\n\t"
                     "ldr %[from], [%[next]], #4\n\t"
                     "mov %[y], %[to]\n\t"
                     "add %[from], %[from], %[memory]\n\t"
                     "dlstp.8 lr, %[bytes]\n"
                     "3:\n\t"
                     "vldrb.8 %q[v], [%[from]], #16\n\t"
                     "vstrb.8 %q[v], [%[y]], #16\n\t"
                     "letp lr, 3b\n\t"
                     "add %[to], %[to], %[bytes]\n\t"
                     "cmp %[next], %[end]\n\t"
                     "bne 2b\n\t"
                     "add %[memory], %[memory], %[step]\n\t"
                     "subs %[windows], %[windows], #1\n\t"
                     "bne 1b"
                     : [to] "+r"(to), [memory] "+r"(memory), [windows] "+r"(windows), [next] "=&r"(next),
                       [from] "=&r"(from), [y] "=&r"(y), [v] "=&w"(v)
                     : [offsets] "r"(offsets), [step] "r"(step), [bytes] "r"(bytes), [end] "r"(end)
                     : "lr", "cc", "memory");
}

/* to[bytes], all `value` */
static inline void mcud_vector_fill(void *to, int32_t value, int32_t bytes)
{
    const int8x16_t v = vdupq_n_s8((int8_t)value);
    __asm__ volatile("wlstp.8 lr, %[bytes], 2f\n"
                     "1:\n\t"
                     "vstrb.8 %q[v], [%[to]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to)
                     : [v] "w"(v), [bytes] "r"(bytes)
                     : "lr", "memory");
}

/* Loads 16 bytes, or as many as are left in a loop by letp. */
#define MCUD_LOAD(to, from) "vldrb.8 %q[" to "], [%[" from "]], #16\n\t"
/* Adds the products of a pixel's and two channels' values to two sums. */
#define MCUD_PIXEL(x, a, b)                                                                                  \
    MCUD_LOAD("v", x)                                                                                        \
    "vmladava.s8 %[" a "], %q[v], %q[w0]\n\t"                                                                \
    "vmladava.s8 %[" b "], %q[v], %q[w1]\n\t"

/* sums[2] += one pixel by the weights of two channels; returns the weights after them. */
static inline const int32_t *mcud_vector_dot_1x2(const int8_t *x, int32_t depth, const int32_t *weights, int32_t sums[2])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int8x16_t v;
    int8x16_t w0;
    int8x16_t w1;
    __asm__("wlstp.8 lr, %[depth], 2f\n"
            "1:\n\t"
            MCUD_LOAD("w0", "w")
            MCUD_LOAD("w1", "w")
            MCUD_PIXEL("x", "a", "b")
            "letp lr, 1b\n"
            "2:"
            : [x] "+r"(x), [w] "+r"(weights), [a] "+Te"(a), [b] "+Te"(b), [v] "=&w"(v), [w0] "=&w"(w0),
              [w1] "=&w"(w1)
            : [depth] "r"(depth)
            : "lr", "memory");
    sums[0] = a;
    sums[1] = b;
    return weights;
}

/* Four sums with loads between multiplications, `round` and the results. */
#define MCUD_ADD_FOURS(round)                                                                                \
    "wlstp.32 lr, %[count], 2f\n"                                                                            \
    "1:\n\t"                                                                                                 \
    "vldrb.s32 %q[v], [%[a]], #4\n\t"                                                                        \
    "vmlas.s32 %q[v], %q[a_multiplier], %[constant]\n\t"                                                     \
    "vldrb.s32 %q[x], [%[b]], #4\n\t"                                                                        \
    "vmla.s32 %q[v], %q[x], %[b_multiplier]\n\t" round                                                       \
    "vqmovnb.s32 %q[v], %q[v]\n\t"                                                                           \
    "vqadd.s16 %q[v], %q[v], %[zero]\n\t"                                                                    \
    "vqmovnb.s16 %q[v], %q[v]\n\t"                                                                           \
    "vstrb.32 %q[v], [%[out]], #4\n\t"                                                                       \
    "letp lr, 1b\n"                                                                                          \
    "2:"
#define MCUD_ADD_OUT [a] "+l"(a), [b] "+l"(b), [out] "+l"(out), [v] "=&w"(v), [x] "=&w"(x)
#define MCUD_ADD_IN                                                                                          \
    [count] "r"(count), [a_multiplier] "w"(vdupq_n_s32(addition->a_multiplier)),                             \
        [b_multiplier] "r"(addition->b_multiplier), [constant] "r"(addition->constant),                      \
        [left] "r"(-addition->shift), [zero] "r"(addition->zero_point)

/* out[count] = a[count] * a_multiplier + b[count] * b_multiplier, requantised as add_s8.h states. */
static inline void mcud_vector_add(const int8_t *a, const int8_t *b, int8_t *out, int32_t count,
                                   const mcud_sum_quant *addition)
{
    const int32x4_t one = vdupq_n_s32(1);
    const int32x4_t below_half = vdupq_n_s32((1 << (addition->shift - 1)) - 1);
    int32x4_t v;
    int32x4_t x;
    __asm__ volatile(MCUD_ADD_FOURS("vmov %q[x], %q[v]\n\t"
                                    "vshl.s32 %q[x], %[left]\n\t"
                                    "vand %q[x], %q[x], %q[one]\n\t"
                                    "vadd.i32 %q[v], %q[v], %q[below_half]\n\t"
                                    "vadd.i32 %q[v], %q[v], %q[x]\n\t"
                                    "vshl.s32 %q[v], %[left]\n\t")
                     : MCUD_ADD_OUT
                     : MCUD_ADD_IN, [one] "w"(one), [below_half] "w"(below_half)
                     : "lr", "memory");
}

/* The same if no sum is a tie. */
static inline void mcud_vector_add_untied(const int8_t *a, const int8_t *b, int8_t *out, int32_t count,
                                          const mcud_sum_quant *addition)
{
    int32x4_t v;
    int32x4_t x;
    __asm__ volatile(MCUD_ADD_FOURS("vrshl.s32 %q[v], %[left]\n\t") : MCUD_ADD_OUT : MCUD_ADD_IN : "lr", "memory");
}

#endif
