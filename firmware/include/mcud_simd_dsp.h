/* mcud_simd.h for Arm cores with the DSP extension: Cortex-M4, M7, M33 and up. Needs unaligned LDR, which these
 * cores do unless UNALIGN_TRP is set. */
#ifndef MCUD_SIMD_DSP_H
#define MCUD_SIMD_DSP_H

#include <stdint.h>
#include <string.h>

/* Rounds half up: clamp(zero_point + acc * multiplier / 2^32, -128, 127). */
static inline int8_t mcud_requantize_s8(int32_t acc, int32_t multiplier, int32_t zero_point)
{
    int32_t value;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(value) : "r"(acc), "r"(multiplier), "r"(zero_point));
    __asm__("ssat %0, #8, %1" : "=r"(value) : "r"(value));
    return (int8_t)value;
}

/* sum * 2^left, saturated; 0 <= left <= 30. */
static inline int32_t mcud_scale_up(int32_t sum, int32_t left)
{
    for (; left > 0; left--) {
        __asm__("qadd %0, %0, %0" : "+r"(sum));
    }
    return sum;
}

/* Bytes 0 and 2, sign-extended to 16 bits. */
static inline int32_t mcud_even_bytes(int32_t word)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
    return pair;
}

/* Bytes 1 and 3. */
static inline int32_t mcud_odd_bytes(int32_t word)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* sum + a.low * b.low + a.high * b.high */
static inline int32_t mcud_add_products(int32_t a, int32_t b, int32_t sum)
{
    int32_t result;
    __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

/* Four values of one pixel to its place in a group of `pixels` pixels. */
static inline void mcud_expand_four(int16_t *to, const int8_t *from, int32_t pixels)
{
    int32_t word;
    memcpy(&word, from, sizeof word);
    int32_t *pairs = (int32_t *)(void *)to;
    pairs[0] = mcud_even_bytes(word);
    pairs[pixels] = mcud_odd_bytes(word);
}

/* The same value four times. */
static inline void mcud_expand_same(int16_t *to, int32_t value, int32_t pixels)
{
    int32_t *pairs = (int32_t *)(void *)to;
    pairs[0] = pairs[pixels] = (int32_t)((uint32_t)value << 16) | (value & 0xFFFF);
}

/* Runs `one` until `at` is at ends[0], then `four` until it is at ends[1]. The ends are in memory, and `free` is a
 * register that every turn may spoil: the products take all the others that a compiler can give. */
#define MCUD_LOOPS(at, free, one, four)                                                                      \
    "ldr %[" free "], %[some]\n\t"                                                                           \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "beq 2f\n"                                                                                               \
    "1:\n\t" one "ldr %[" free "], %[some]\n\t"                                                             \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "bne 1b\n"                                                                                               \
    "2:\n\t"                                                                                                 \
    "ldr %[" free "], %[end]\n\t"                                                                            \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "beq 4f\n"                                                                                               \
    "3:\n\t" four "ldr %[" free "], %[end]\n\t"                                                             \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "bne 3b\n"                                                                                               \
    "4:\n\t"

/* One group of three pixels and two channels: 20 instructions for 24 products. */
#define MCUD_GROUP_3X2                                                                                       \
    "ldm %[x]!, {r8, r9, r10}\n\t"                                                                           \
    "ldrd %[w0], %[w1], [%[w]]\n\t"                                                                          \
    "sxtb16 %[w0], %[w0]\n\t"                                                                                \
    "sxtb16 %[w1], %[w1]\n\t"                                                                                \
    "smlad %[a], r8, %[w0], %[a]\n\t"                                                                        \
    "smlad %[b], r8, %[w1], %[b]\n\t"                                                                        \
    "smlad %[c], r9, %[w0], %[c]\n\t"                                                                        \
    "smlad %[d], r9, %[w1], %[d]\n\t"                                                                        \
    "smlad %[e], r10, %[w0], %[e]\n\t"                                                                       \
    "smlad %[f], r10, %[w1], %[f]\n\t"                                                                       \
    "ldm %[x]!, {r8, r9, r10}\n\t"                                                                           \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "sxtb16 %[w0], %[w0], ror #8\n\t"                                                                        \
    "sxtb16 %[w1], %[w1], ror #8\n\t"                                                                        \
    "smlad %[a], r8, %[w0], %[a]\n\t"                                                                        \
    "smlad %[b], r8, %[w1], %[b]\n\t"                                                                        \
    "smlad %[c], r9, %[w0], %[c]\n\t"                                                                        \
    "smlad %[d], r9, %[w1], %[d]\n\t"                                                                        \
    "smlad %[e], r10, %[w0], %[e]\n\t"                                                                       \
    "smlad %[f], r10, %[w1], %[f]\n\t"

/* Three pixels by two channels: x of 3 pixels, w[groups][2], sums[pixel][channel]. */
static inline const int32_t *mcud_dot_3x2(const int16_t *x, const int16_t *const ends[2], const int32_t *w,
                                          int32_t sums[6])
{
    int32_t w0;
    int32_t w1;
    __asm__ volatile(MCUD_LOOPS("x", "w0", MCUD_GROUP_3X2, MCUD_GROUP_3X2 MCUD_GROUP_3X2 MCUD_GROUP_3X2 MCUD_GROUP_3X2)
                     : [x] "+r"(x), [w] "+r"(w), [a] "+r"(sums[0]), [b] "+r"(sums[1]), [c] "+r"(sums[2]),
                       [d] "+r"(sums[3]), [e] "+r"(sums[4]), [f] "+r"(sums[5]), [w0] "=&r"(w0), [w1]
                       "=&r"(w1)
                     : [some] "m"(ends[0]), [end] "m"(ends[1])
                     : "r8", "r9", "r10", "cc", "memory");
    return w;
}

/* One group of two pixels and two channels: 14 instructions for 16 products. */
#define MCUD_GROUP_2X2                                                                                       \
    "ldm %[x]!, {r8, r9, r10, r11}\n\t"                                                                      \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "sxtb16 %[t], %[w0]\n\t"                                                                                 \
    "sxtb16 %[w0], %[w0], ror #8\n\t"                                                                        \
    "smlad %[a], r8, %[t], %[a]\n\t"                                                                         \
    "smlad %[c], r9, %[t], %[c]\n\t"                                                                         \
    "sxtb16 %[t], %[w1]\n\t"                                                                                 \
    "sxtb16 %[w1], %[w1], ror #8\n\t"                                                                        \
    "smlad %[a], r10, %[w0], %[a]\n\t"                                                                       \
    "smlad %[c], r11, %[w0], %[c]\n\t"                                                                       \
    "smlad %[b], r8, %[t], %[b]\n\t"                                                                         \
    "smlad %[d], r9, %[t], %[d]\n\t"                                                                         \
    "smlad %[b], r10, %[w1], %[b]\n\t"                                                                       \
    "smlad %[d], r11, %[w1], %[d]\n\t"

/* Two pixels by two channels. */
static inline const int32_t *mcud_dot_2x2(const int16_t *x, const int16_t *const ends[2], const int32_t *w,
                                          int32_t sums[4])
{
    int32_t w0;
    int32_t w1;
    int32_t t;
    __asm__ volatile(MCUD_LOOPS("x", "t", MCUD_GROUP_2X2, MCUD_GROUP_2X2 MCUD_GROUP_2X2 MCUD_GROUP_2X2 MCUD_GROUP_2X2)
                     : [x] "+r"(x), [w] "+r"(w), [a] "+r"(sums[0]), [b] "+r"(sums[1]), [c] "+r"(sums[2]),
                       [d] "+r"(sums[3]), [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(t)
                     : [some] "m"(ends[0]), [end] "m"(ends[1])
                     : "r8", "r9", "r10", "r11", "cc", "memory");
    return w;
}

/* The first one of two pixels by two channels. */
static inline const int32_t *mcud_dot_1x2(const int16_t *x, const int16_t *const ends[2], const int32_t *w,
                                          int32_t sums[2])
{
    const int32_t *pairs = (const int32_t *)(const void *)x;
    const int32_t *const end = (const int32_t *)(const void *)ends[1];
    int32_t a = sums[0];
    int32_t b = sums[1];
    for (; pairs < end; pairs += 4, w += 2) {
        a = mcud_add_products(pairs[0], mcud_even_bytes(w[0]), a);
        b = mcud_add_products(pairs[0], mcud_even_bytes(w[1]), b);
        a = mcud_add_products(pairs[2], mcud_odd_bytes(w[0]), a);
        b = mcud_add_products(pairs[2], mcud_odd_bytes(w[1]), b);
    }
    sums[0] = a;
    sums[1] = b;
    return w;
}

/* One group of one pixel and four channels: 20 instructions for 16 products. */
#define MCUD_GROUP_1X4                                                                                       \
    "ldr %[x1], [%[x]], #4\n\t"                                                                              \
    "ldm %[w]!, {r8, r9, r10, r11}\n\t"                                                                      \
    "sxtb16 %[x0], %[x1]\n\t"                                                                                \
    "sxtb16 %[x1], %[x1], ror #8\n\t"                                                                        \
    "sxtb16 %[t], r8\n\t"                                                                                    \
    "sxtb16 r8, r8, ror #8\n\t"                                                                              \
    "smlad %[a], %[x0], %[t], %[a]\n\t"                                                                      \
    "sxtb16 %[t], r9\n\t"                                                                                    \
    "sxtb16 r9, r9, ror #8\n\t"                                                                              \
    "smlad %[b], %[x0], %[t], %[b]\n\t"                                                                      \
    "sxtb16 %[t], r10\n\t"                                                                                   \
    "sxtb16 r10, r10, ror #8\n\t"                                                                            \
    "smlad %[c], %[x0], %[t], %[c]\n\t"                                                                      \
    "sxtb16 %[t], r11\n\t"                                                                                   \
    "sxtb16 r11, r11, ror #8\n\t"                                                                            \
    "smlad %[d], %[x0], %[t], %[d]\n\t"                                                                      \
    "smlad %[a], %[x1], r8, %[a]\n\t"                                                                        \
    "smlad %[b], %[x1], r9, %[b]\n\t"                                                                        \
    "smlad %[c], %[x1], r10, %[c]\n\t"                                                                       \
    "smlad %[d], %[x1], r11, %[d]\n\t"

/* One pixel, not expanded, by four channels: x[groups][4], w[groups][4 channels]. */
static inline const int32_t *mcud_dot_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *w,
                                          int32_t sums[4])
{
    int32_t x0;
    int32_t x1;
    int32_t t;
    __asm__ volatile(MCUD_LOOPS("x", "t", MCUD_GROUP_1X4, MCUD_GROUP_1X4 MCUD_GROUP_1X4 MCUD_GROUP_1X4 MCUD_GROUP_1X4)
                     : [x] "+r"(x), [w] "+r"(w), [a] "+r"(sums[0]), [b] "+r"(sums[1]), [c] "+r"(sums[2]),
                       [d] "+r"(sums[3]), [x0] "=&r"(x0), [x1] "=&r"(x1), [t] "=&r"(t)
                     : [some] "m"(ends[0]), [end] "m"(ends[1])
                     : "r8", "r9", "r10", "r11", "cc", "memory");
    return w;
}

/* One group of one pixel and four channels. */
static inline const int32_t *mcud_group_1x4(const int8_t x[4], const int32_t w[4], int32_t sums[4])
{
    int32_t word;
    memcpy(&word, x, sizeof word);
    const int32_t even = mcud_even_bytes(word);
    const int32_t odd = mcud_odd_bytes(word);
    sums[0] = mcud_add_products(odd, mcud_odd_bytes(w[0]), mcud_add_products(even, mcud_even_bytes(w[0]), sums[0]));
    sums[1] = mcud_add_products(odd, mcud_odd_bytes(w[1]), mcud_add_products(even, mcud_even_bytes(w[1]), sums[1]));
    sums[2] = mcud_add_products(odd, mcud_odd_bytes(w[2]), mcud_add_products(even, mcud_even_bytes(w[2]), sums[2]));
    sums[3] = mcud_add_products(odd, mcud_odd_bytes(w[3]), mcud_add_products(even, mcud_even_bytes(w[3]), sums[3]));
    return w + 4;
}

/* One pair of taps, four channels: 18 instructions for 8 products. */
#define MCUD_TAP_PAIR                                                                                        \
    "ldrd %[x], %[y], [%[taps]], #8\n\t"                                                                     \
    "ldr %[x], [%[x], %[at]]\n\t"                                                                            \
    "ldr %[y], [%[y], %[at]]\n\t"                                                                            \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "pkhbt %[t], %[x], %[y], lsl #16\n\t"                                                                    \
    "pkhtb %[y], %[y], %[x], asr #16\n\t"                                                                    \
    "sxtb16 %[x], %[t]\n\t"                                                                                  \
    "sxtb16 %[u], %[w0]\n\t"                                                                                 \
    "sxtb16 %[t], %[t], ror #8\n\t"                                                                          \
    "sxtb16 %[w0], %[w0], ror #8\n\t"                                                                        \
    "smlad %[a], %[x], %[u], %[a]\n\t"                                                                       \
    "smlad %[b], %[t], %[w0], %[b]\n\t"                                                                      \
    "sxtb16 %[x], %[y]\n\t"                                                                                  \
    "sxtb16 %[u], %[w1]\n\t"                                                                                 \
    "sxtb16 %[y], %[y], ror #8\n\t"                                                                          \
    "sxtb16 %[w1], %[w1], ror #8\n\t"                                                                        \
    "smlad %[c], %[x], %[u], %[c]\n\t"                                                                       \
    "smlad %[d], %[y], %[w1], %[d]\n\t"

/* Four channels, `at` bytes behind the taps of a window, taken two by two. The weights are (first, first, second,
 * second) of channels 0 and 1, then of channels 2 and 3. */
static inline const int32_t *mcud_tap_pairs_x4(const int8_t *const *taps, const int8_t *const *const ends[2], int32_t at,
                                               const int32_t *w, int32_t sums[4])
{
    int32_t x;
    int32_t y;
    int32_t t;
    int32_t u;
    int32_t w0;
    int32_t w1;
    __asm__ volatile(MCUD_LOOPS("taps", "t", MCUD_TAP_PAIR, MCUD_TAP_PAIR MCUD_TAP_PAIR MCUD_TAP_PAIR MCUD_TAP_PAIR)
                     : [taps] "+r"(taps), [w] "+r"(w), [a] "+r"(sums[0]), [b] "+r"(sums[1]), [c]
                       "+r"(sums[2]), [d] "+r"(sums[3]), [x] "=&r"(x), [y] "=&r"(y), [t] "=&r"(t), [u]
                       "=&r"(u), [w0] "=&r"(w0), [w1] "=&r"(w1)
                     : [some] "m"(ends[0]), [end] "m"(ends[1]), [at] "r"(at)
                     : "cc", "memory");
    return w;
}

/* Four channels of one tap. */
static inline void mcud_one_tap_x4(const int8_t *tap, const int32_t *w, int32_t sums[4])
{
    int32_t x;
    memcpy(&x, tap, sizeof x);
    const int32_t even = mcud_even_bytes(x);
    const int32_t odd = mcud_odd_bytes(x);
    const int32_t w_even = mcud_even_bytes(w[0]);
    const int32_t w_odd = mcud_odd_bytes(w[0]);
    __asm__("smlabb %0, %1, %2, %0" : "+r"(sums[0]) : "r"(even), "r"(w_even));
    __asm__("smlabb %0, %1, %2, %0" : "+r"(sums[1]) : "r"(odd), "r"(w_odd));
    __asm__("smlatt %0, %1, %2, %0" : "+r"(sums[2]) : "r"(even), "r"(w_even));
    __asm__("smlatt %0, %1, %2, %0" : "+r"(sums[3]) : "r"(odd), "r"(w_odd));
}

#endif
