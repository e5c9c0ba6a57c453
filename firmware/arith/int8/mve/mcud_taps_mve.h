/* The windows of depthwise convolutions by the M-profile Vector Extension: a part of mcud_vector_mve.h. */
#ifndef MCUD_TAPS_MVE_H
#define MCUD_TAPS_MVE_H

#include <arm_mve.h>
#include <stdint.h>

#include "mcud_simd.h"

#if MCUD_BLOCKS && !defined(__clang__)

/* One block of channels at the taps of a window; `load` and `store` are the instructions that load x and store y.
 * Products of two taps are added in 16 bits, which suffice. The second x is loaded twice, since there are only 8 vector
 * registers. */
#define MCUD_WIDEN                                                                                           \
    "vmovlb.s16 %q[x], %q[e]\n\t"                                                                            \
    "vmovlt.s16 %q[e], %q[e]\n\t"                                                                            \
    "vadd.i32 %q[a], %q[a], %q[x]\n\t"                                                                       \
    "vadd.i32 %q[b], %q[b], %q[e]\n\t"                                                                       \
    "vmovlb.s16 %q[x], %q[o]\n\t"                                                                            \
    "vmovlt.s16 %q[o], %q[o]\n\t"                                                                            \
    "vadd.i32 %q[c], %q[c], %q[x]\n\t"                                                                       \
    "vadd.i32 %q[d], %q[d], %q[o]\n\t"
#define MCUD_SCALE(multiply, sums)                                                                           \
    "vldrw.32 %q[x], [%[w]], #16\n\t"                                                                        \
    multiply " %q[" sums "], %q[" sums "], %q[x]\n\t"
#define MCUD_SCALES(multiply)                                                                                \
    MCUD_SCALE(multiply, "a") MCUD_SCALE(multiply, "b") MCUD_SCALE(multiply, "c") MCUD_SCALE(multiply, "d")
#define MCUD_TAPS(load, store)                                                                               \
    "mov %[t], %[taps]\n\t"                                                                                 \
    "vldrw.32 %q[a], [%[w]], #16\n\t"                                                                        \
    "vldrw.32 %q[b], [%[w]], #16\n\t"                                                                        \
    "vldrw.32 %q[c], [%[w]], #16\n\t"                                                                        \
    "vldrw.32 %q[d], [%[w]], #16\n\t"                                                                        \
    "wls lr, %[pairs], 2f\n"                                                                                 \
    "1:\n\t"                                                                                                \
    "ldrd %[p0], %[p1], [%[t]], #8\n\t"                                                                     \
    "add %[p0], %[p0], %[at]\n\t"                                                                           \
    "add %[p1], %[p1], %[at]\n\t"                                                                           \
    load " %q[x], [%[p0]]\n\t"                                                                              \
    "vldrb.8 %q[k], [%[w]], #16\n\t"                                                                        \
    "vmullb.s8 %q[e], %q[x], %q[k]\n\t"                                                                     \
    "vmullt.s8 %q[o], %q[x], %q[k]\n\t"                                                                     \
    load " %q[x], [%[p1]]\n\t"                                                                              \
    "vldrb.8 %q[k], [%[w]], #16\n\t"                                                                        \
    "vmullb.s8 %q[x], %q[x], %q[k]\n\t"                                                                     \
    "vadd.i16 %q[e], %q[e], %q[x]\n\t"                                                                      \
    load " %q[x], [%[p1]]\n\t"                                                                              \
    "vmullt.s8 %q[k], %q[x], %q[k]\n\t"                                                                     \
    "vadd.i16 %q[o], %q[o], %q[k]\n\t"                                                                      \
    MCUD_WIDEN                                                                                               \
    "le lr, 1b\n"                                                                                            \
    "2:\n\t"                                                                                                \
    "ldr %[p0], %[odd]\n\t"                                                                                 \
    "cbz %[p0], 3f\n\t"                                                                                     \
    "ldr %[p0], [%[t]]\n\t"                                                                                 \
    "add %[p0], %[p0], %[at]\n\t"                                                                           \
    load " %q[x], [%[p0]]\n\t"                                                                              \
    "vldrb.8 %q[k], [%[w]], #16\n\t"                                                                        \
    "vmullb.s8 %q[e], %q[x], %q[k]\n\t"                                                                     \
    "vmullt.s8 %q[o], %q[x], %q[k]\n\t"                                                                     \
    MCUD_WIDEN                                                                                               \
    "3:\n\t"                                                                                                 \
    MCUD_IF_TWICE(MCUD_SCALES("vqrdmulh.s32"))                                                               \
    "ldr %[p0], %[left]\n\t"                                                                                \
    "cbz %[p0], 4f\n\t"                                                                                     \
    "vqshl.s32 %q[a], %[p0]\n\t"                                                                            \
    "vqshl.s32 %q[b], %[p0]\n\t"                                                                            \
    "vqshl.s32 %q[c], %[p0]\n\t"                                                                            \
    "vqshl.s32 %q[d], %[p0]\n"                                                                               \
    "4:\n\t"                                                                                                \
    MCUD_SCALES("vrmulh.s32")                                                                                \
    "vqmovnb.s32 %q[a], %q[a]\n\t"                                                                          \
    "vqmovnt.s32 %q[a], %q[b]\n\t"                                                                          \
    "vqmovnb.s32 %q[c], %q[c]\n\t"                                                                          \
    "vqmovnt.s32 %q[c], %q[d]\n\t"                                                                          \
    "ldr %[p0], %[zero]\n\t"                                                                                \
    "vqadd.s16 %q[a], %q[a], %[p0]\n\t"                                                                     \
    "vqadd.s16 %q[c], %q[c], %[p0]\n\t"                                                                     \
    "vqmovnb.s16 %q[a], %q[a]\n\t"                                                                          \
    "vqmovnt.s16 %q[a], %q[c]\n\t"                                                                          \
    store " %q[a], [%[y]], #16\n\t"

/* All operands of MCUD_TAPS except its number of repetitions. */
#define MCUD_TAPS_OUT                                                                                        \
    [t] "=&r"(t), [w] "+r"(w), [a] "=&w"(a), [b] "=&w"(b), [c] "=&w"(c), [d] "=&w"(d), [x] "=&w"(x),         \
        [k] "=&w"(k), [e] "=&w"(e), [o] "=&w"(o), [p0] "=&l"(p0), [p1] "=&r"(p1), [y] "+r"(y), [at] "+r"(at)
#define MCUD_TAPS_IN                                                                                         \
    [taps] "r"(taps), [pairs] "r"(tap_count / 2), [odd] "m"(odd), [left] "m"(left), [zero] "m"(zero_point)

/* Multiplies `channels` channels at the taps of windows, which are `step` bytes apart, to y[windows][channels]. The
 * taps of the first window are `at` bytes after `taps`. No count is 0. */
static inline void mcud_vector_taps(const int8_t *const *taps, int32_t tap_count, int32_t at, int32_t step,
                                    int32_t windows, const int32_t *records, const mcud_finish_s8 *finish, int8_t *y,
                                    int32_t channels)
{
    const int32_t odd = tap_count & 1;
    const int32_t left = finish->left;
    const int32_t zero_point = finish->zero_point;
    const int32_t all_blocks = channels / 16;
    const int32_t rest = channels & 15;
    const int32_t advance = step - channels + rest;
    const int32_t *w = records;
    const int8_t *const *t;
    int32x4_t a;
    int32x4_t b;
    int32x4_t c;
    int32x4_t d;
    int8x16_t x;
    int8x16_t k;
    int16x8_t e;
    int16x8_t o;
    int32_t p0;
    int32_t p1;
    int32_t blocks;
    if (rest == 0) {
        __asm__ volatile("6:\n\t"
                         "ldr %[w], %[records]\n\t"
                         "ldr %[blocks], %[all_blocks]\n"
                         "5:\n\t"
                         MCUD_TAPS("vldrb.8", "vstrb.8")
                         "add %[at], %[at], #16\n\t"
                         "subs %[blocks], %[blocks], #1\n\t"
                         "bne 5b\n\t"
                         "ldr %[p0], %[advance]\n\t"
                         "add %[at], %[at], %[p0]\n\t"
                         "subs %[windows], %[windows], #1\n\t"
                         "bne 6b\n\t"
                         : MCUD_TAPS_OUT, [blocks] "=&r"(blocks), [windows] "+r"(windows)
                         : MCUD_TAPS_IN, [all_blocks] "m"(all_blocks), [records] "m"(records), [advance] "m"(advance)
                         : "lr", "cc", "memory");
        return;
    }
    for (; windows > 0; windows--, at += advance) {
        w = records;
        for (blocks = all_blocks; blocks > 0; blocks--, at += 16) {
            __asm__ volatile(MCUD_TAPS("vldrb.8", "vstrb.8") : MCUD_TAPS_OUT : MCUD_TAPS_IN : "lr", "memory");
        }
        int32_t predicate; /* restored, since it cannot be named as clobbered */
        __asm__ volatile("vmrs %[p0], p0\n\t"
                         "str %[p0], %[predicate]\n\t"
                         "vctp.8 %[rest]\n\t"
                         MCUD_TAPS("vpst\n\tvldrbt.8", "vpst\n\tvstrbt.8")
                         "ldr %[p0], %[predicate]\n\t"
                         "vmsr p0, %[p0]\n\t"
                         : MCUD_TAPS_OUT, [predicate] "=m"(predicate)
                         : MCUD_TAPS_IN, [rest] "r"(rest)
                         : "lr", "memory");
        y += rest - 16;
    }
}

#else
#include "mcud_blocks_mve.h"
#endif

/* Points taps[count] to taps of one row of a window: taps [first, end) are inside the input, from x on, `pitch` bytes
 * apart; the others are `padding`. */
static inline void mcud_vector_find_taps(const int8_t **taps, int32_t count, int32_t first, int32_t end,
                                         const int8_t *x, int32_t pitch, const int8_t *padding)
{
    const uint32x4_t pitches = vdupq_n_u32((uint32_t)pitch);
    const uint32x4_t outside = vdupq_n_u32((uint32_t)padding);
    for (int32_t s = 0; s < count; s += 4) {
        const uint32x4_t place = vidupq_n_u32((uint32_t)(s - first), 1);
        const mve_pred16_t is_outside = vcmpcsq_n_u32(place, (uint32_t)(end - first));
        const uint32x4_t inside = vmlasq_n_u32(place, pitches, (uint32_t)x);
        vst1q_p_u32((uint32_t *)(void *)(taps + s), vpselq_u32(outside, inside, is_outside),
                    vctp32q((uint32_t)(count - s)));
    }
}

#endif
