/* Sums, differences and products of float32 values, eight at a time. The values of an operand are consecutive, or
 * are the same value eight times with a step of 0.
 *
 *   mcud_add_eights_f32  a + b
 *   mcud_sub_eights_f32  a - b
 *   mcud_mul_eights_f32  a * b
 *
 * The results may overwrite an operand. A function returns the number of results: `count` rounded down to a multiple of
 * 8. */
#ifndef MCUD_EIGHTS_F32_H
#define MCUD_EIGHTS_F32_H

#include <stdint.h>

/* Values from eight to the next eight: 8 or 0. */
typedef struct {
    const float *a;
    const float *b;
    int32_t a_step;
    int32_t b_step;
} mcud_pairs_f32;

#if defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__OPTIMIZE__)

/* 15 instructions for 8 results. */
#define MCUD_EIGHTS_F32(name, instruction, operation)                                                        \
    static inline int32_t name(const mcud_pairs_f32 *pairs, int32_t count, float *out)                       \
    {                                                                                                        \
        const float *a = pairs->a;                                                                           \
        const float *b = pairs->b;                                                                           \
        int32_t left = count - 8;                                                                            \
        if (left < 0) {                                                                                      \
            return 0;                                                                                        \
        }                                                                                                    \
        __asm__ volatile("1:\n\t"                                                                            \
                         "vldmia %[a], {s0-s7}\n\t"                                                          \
                         "vldmia %[b], {s8-s15}\n\t"                                                         \
                         "add %[a], %[a], %[a_step], lsl #2\n\t"                                             \
                         "add %[b], %[b], %[b_step], lsl #2\n\t"                                             \
                         instruction " s0, s0, s8\n\t"                                                       \
                         instruction " s1, s1, s9\n\t"                                                       \
                         instruction " s2, s2, s10\n\t"                                                      \
                         instruction " s3, s3, s11\n\t"                                                      \
                         instruction " s4, s4, s12\n\t"                                                      \
                         instruction " s5, s5, s13\n\t"                                                      \
                         instruction " s6, s6, s14\n\t"                                                      \
                         instruction " s7, s7, s15\n\t"                                                      \
                         "subs %[left], %[left], #8\n\t"                                                     \
                         "vstmia %[out]!, {s0-s7}\n\t"                                                       \
                         "bge 1b"                                                                            \
                         : [a] "+r"(a), [b] "+r"(b), [out] "+r"(out), [left] "+r"(left)                      \
                         : [a_step] "r"(pairs->a_step), [b_step] "r"(pairs->b_step)                          \
                         : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12",  \
                           "s13", "s14", "s15", "cc", "memory");                                             \
        return count & ~7;                                                                                   \
    }

#else

#define MCUD_EIGHTS_F32(name, instruction, operation)                                                        \
    static inline int32_t name(const mcud_pairs_f32 *pairs, int32_t count, float *out)                       \
    {                                                                                                        \
        const float *a = pairs->a;                                                                           \
        const float *b = pairs->b;                                                                           \
        for (int32_t left = count; left >= 8; left -= 8, out += 8) {                                         \
            for (int32_t half = 0; half < 8; half += 4) {                                                    \
                const float first = a[half] operation b[half];                                               \
                const float second = a[half + 1] operation b[half + 1];                                      \
                const float third = a[half + 2] operation b[half + 2];                                       \
                const float fourth = a[half + 3] operation b[half + 3];                                      \
                out[half] = first;                                                                           \
                out[half + 1] = second;                                                                      \
                out[half + 2] = third;                                                                       \
                out[half + 3] = fourth;                                                                      \
            }                                                                                                \
            a += pairs->a_step;                                                                              \
            b += pairs->b_step;                                                                              \
        }                                                                                                    \
        return count & ~7;                                                                                   \
    }

#endif

#endif
