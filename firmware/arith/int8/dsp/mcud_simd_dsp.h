/* mcud_simd.h for Arm cores with the DSP extension: Cortex-M4, M7, M33 and up. Needs unaligned LDR, which these cores
 * support unless UNALIGN_TRP is set. */
#ifndef MCUD_SIMD_DSP_H
#define MCUD_SIMD_DSP_H

#include "mcud_dsp.h"

/* Adds one group of one pixel and four channels: x[4], w[4][4]. */
static inline void mcud_group_1x4(const int8_t x[4], const int32_t w[4], int32_t sums[4])
{
    const int32_t word = mcud_load_word(x);
    const int32_t even = mcud_even_bytes(word);
    const int32_t odd = mcud_odd_bytes(word);
    sums[0] = mcud_add_products(even, mcud_even_bytes(w[0]), sums[0]);
    sums[1] = mcud_add_products(even, mcud_even_bytes(w[1]), sums[1]);
    sums[2] = mcud_add_products(even, mcud_even_bytes(w[2]), sums[2]);
    sums[3] = mcud_add_products(even, mcud_even_bytes(w[3]), sums[3]);
    sums[0] = mcud_add_products(odd, mcud_odd_bytes(w[0]), sums[0]);
    sums[1] = mcud_add_products(odd, mcud_odd_bytes(w[1]), sums[1]);
    sums[2] = mcud_add_products(odd, mcud_odd_bytes(w[2]), sums[2]);
    sums[3] = mcud_add_products(odd, mcud_odd_bytes(w[3]), sums[3]);
}

static inline int32_t mcud_group_1x1(const int8_t x[4], const int32_t *w, int32_t sum)
{
    const int32_t word = mcud_load_word(x);
    sum = mcud_add_products(mcud_even_bytes(word), mcud_even_bytes(*w), sum);
    return mcud_add_products(mcud_odd_bytes(word), mcud_odd_bytes(*w), sum);
}

#if MCUD_BLOCKS

#include "mcud_taps_dsp.h"

#if defined(__clang__)
#define MCUD_Y_OPERAND
#define MCUD_ENDS
#define MCUD_OPERANDS
#else
#define MCUD_Y_OPERAND [y] "+m"(y),
#define MCUD_ENDS [some] "m"(ends[0]), [end] "m"(ends[1])
#define MCUD_OPERANDS                                                                                        \
    [first] "m"(first), [last] "m"(last), [finish] "m"(*finish), [pitch] "m"(finish->pitch), MCUD_ENDS
#endif

/* One group of three pixels and two channels: 20 instructions for 24 products. */
#define MCUD_GROUP_3X2                                                                                       \
    "ldm %[x]!, {r8, r10, lr}\n\t"                                                                           \
    "ldrd %[w0], %[w1], [%[w]]\n\t"                                                                          \
    "sxtb16 %[w0], %[w0]\n\t"                                                                                \
    "sxtb16 %[w1], %[w1]\n\t"                                                                                \
    "smlad %[a], r8, %[w0], %[a]\n\t"                                                                        \
    "smlad %[b], r8, %[w1], %[b]\n\t"                                                                        \
    "smlad %[c], r10, %[w0], %[c]\n\t"                                                                       \
    "smlad %[d], r10, %[w1], %[d]\n\t"                                                                       \
    "smlad %[e], lr, %[w0], %[e]\n\t"                                                                        \
    "smlad %[f], lr, %[w1], %[f]\n\t"                                                                        \
    "ldm %[x]!, {r8, r10, lr}\n\t"                                                                           \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "sxtb16 %[w0], %[w0], ror #8\n\t"                                                                        \
    "sxtb16 %[w1], %[w1], ror #8\n\t"                                                                        \
    "smlad %[a], r8, %[w0], %[a]\n\t"                                                                        \
    "smlad %[b], r8, %[w1], %[b]\n\t"                                                                        \
    "smlad %[c], r10, %[w0], %[c]\n\t"                                                                       \
    "smlad %[d], r10, %[w1], %[d]\n\t"                                                                       \
    "smlad %[e], lr, %[w0], %[e]\n\t"                                                                        \
    "smlad %[f], lr, %[w1], %[f]\n\t"

/* Multiplies x[groups] of 3 pixels with an even number of channels to y[3][channels], whose pixels are `pitch` apart. */
MCUD_BLOCK const int32_t *mcud_records_3x2(const int16_t *x, const int16_t *const ends[2],
                                           const int32_t *record, const mcud_finish_s8 *finish, int8_t *y,
                                           int32_t channels)
{
    const int16_t *const first = x;
    const int8_t *const last = y + channels;
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;
    int32_t e;
    int32_t f;
    int32_t w0;
    int32_t w1;
#if defined(__clang__)
    MCUD_FRAME(ends[0], ends[1], first, last, finish, y);
    x = (const void *)frame;
#endif
    __asm__ volatile(
        MCUD_ENTER("x", "a", "b")
        "0:\n\t"
        "ldr %[x], " MCUD_FIRST "\n\t"
        "ldrd %[a], %[b], [%[w]], #8\n\t"
        "mov %[c], %[a]\n\t"
        "mov %[d], %[b]\n\t"
        "mov %[e], %[a]\n\t"
        "mov %[f], %[b]\n\t"
        MCUD_LOOPS("x", "w0", MCUD_GROUP_3X2, MCUD_REPEAT("4", MCUD_GROUP_3X2, MCUD_LINES_60))
        "ldrd %[w0], %[w1], [%[w]], #8\n\t"
        MCUD_IF_TWICE(
        "smmlar %[a], %[a], %[w0], %[a]\n\t"
        "smmlar %[b], %[b], %[w1], %[b]\n\t"
        "smmlar %[c], %[c], %[w0], %[c]\n\t"
        "smmlar %[d], %[d], %[w1], %[d]\n\t"
        "smmlar %[e], %[e], %[w0], %[e]\n\t"
        "smmlar %[f], %[f], %[w1], %[f]\n\t"
        "ldrd %[w0], %[w1], [%[w]], #8\n\t")
        "ldrd r8, r10, " MCUD_FINISH "\n\t" /* zero point and left */
        "cmp r10, #0\n\t"
        "beq 6f\n"
        "5:\n\t"
        "qadd %[a], %[a], %[a]\n\t"
        "qadd %[b], %[b], %[b]\n\t"
        "qadd %[c], %[c], %[c]\n\t"
        "qadd %[d], %[d], %[d]\n\t"
        "qadd %[e], %[e], %[e]\n\t"
        "qadd %[f], %[f], %[f]\n\t"
        "subs r10, r10, #1\n\t"
        "bne 5b\n"
        "6:\n\t"
        "smmlar %[a], %[a], %[w0], r8\n\t"
        "smmlar %[b], %[b], %[w1], r8\n\t"
        "smmlar %[c], %[c], %[w0], r8\n\t"
        "smmlar %[d], %[d], %[w1], r8\n\t"
        "smmlar %[e], %[e], %[w0], r8\n\t"
        "smmlar %[f], %[f], %[w1], r8\n\t"
        "ssat %[a], #8, %[a]\n\t"
        "ssat %[b], #8, %[b]\n\t"
        "ssat %[c], #8, %[c]\n\t"
        "ssat %[d], #8, %[d]\n\t"
        "ssat %[e], #8, %[e]\n\t"
        "ssat %[f], #8, %[f]\n\t"
        "ldr r8, " MCUD_Y "\n\t"
        "ldr r10, " MCUD_PITCH "\n\t"
        "ldr %[w0], " MCUD_LAST "\n\t"
        "add lr, r8, r10\n\t"
        "strb %[a], [r8], #1\n\t"
        "strb %[b], [r8], #1\n\t"
        "str r8, " MCUD_Y "\n\t"
        "strb %[c], [lr]\n\t"
        "strb %[d], [lr, #1]\n\t"
        "add lr, lr, r10\n\t"
        "strb %[e], [lr]\n\t"
        "strb %[f], [lr, #1]\n\t"
        "cmp r8, %[w0]\n\t"
        "bne 0b\n\t"
        MCUD_LEAVE
        : [x] MCUD_AT(x), [w] "+r"(record), MCUD_Y_OPERAND [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),
          [d] "=&r"(d), [e] "=&r"(e), [f] "=&r"(f), [w0] "=&r"(w0), [w1] "=&r"(w1)
        : MCUD_OPERANDS
        : "r8", "r10", "lr", "cc", "memory");
    return record;
}

/* One group of two pixels and two channels: 14 instructions for 16 products. */
#define MCUD_GROUP_2X2                                                                                       \
    "ldm %[x]!, {r8, r10, r11, lr}\n\t"                                                                      \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "sxtb16 %[t], %[w0]\n\t"                                                                                 \
    "sxtb16 %[w0], %[w0], ror #8\n\t"                                                                        \
    "smlad %[a], r8, %[t], %[a]\n\t"                                                                         \
    "smlad %[c], r10, %[t], %[c]\n\t"                                                                        \
    "sxtb16 %[t], %[w1]\n\t"                                                                                 \
    "sxtb16 %[w1], %[w1], ror #8\n\t"                                                                        \
    "smlad %[a], r11, %[w0], %[a]\n\t"                                                                       \
    "smlad %[c], lr, %[w0], %[c]\n\t"                                                                        \
    "smlad %[b], r8, %[t], %[b]\n\t"                                                                         \
    "smlad %[d], r10, %[t], %[d]\n\t"                                                                        \
    "smlad %[b], r11, %[w1], %[b]\n\t"                                                                       \
    "smlad %[d], lr, %[w1], %[d]\n\t"

/* The same for 2 pixels. */
MCUD_BLOCK const int32_t *mcud_records_2x2(const int16_t *x, const int16_t *const ends[2],
                                           const int32_t *record, const mcud_finish_s8 *finish, int8_t *y,
                                           int32_t channels)
{
    const int16_t *const first = x;
    const int8_t *const last = y + channels;
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;
    int32_t w0;
    int32_t w1;
    int32_t t;
#if defined(__clang__)
    MCUD_FRAME(ends[0], ends[1], first, last, finish, y);
    x = (const void *)frame;
#endif
    __asm__ volatile(
        MCUD_ENTER("x", "a", "b")
        "0:\n\t"
        "ldr %[x], " MCUD_FIRST "\n\t"
        "ldrd %[a], %[b], [%[w]], #8\n\t"
        "mov %[c], %[a]\n\t"
        "mov %[d], %[b]\n\t"
        MCUD_LOOPS("x", "t", MCUD_GROUP_2X2, MCUD_REPEAT("4", MCUD_GROUP_2X2, MCUD_LINES_60))
        "ldrd %[w0], %[w1], [%[w]], #8\n\t"
        MCUD_IF_TWICE(
        "smmlar %[a], %[a], %[w0], %[a]\n\t"
        "smmlar %[b], %[b], %[w1], %[b]\n\t"
        "smmlar %[c], %[c], %[w0], %[c]\n\t"
        "smmlar %[d], %[d], %[w1], %[d]\n\t"
        "ldrd %[w0], %[w1], [%[w]], #8\n\t")
        "ldrd r8, r10, " MCUD_FINISH "\n\t"
        "cmp r10, #0\n\t"
        "beq 6f\n"
        "5:\n\t"
        "qadd %[a], %[a], %[a]\n\t"
        "qadd %[b], %[b], %[b]\n\t"
        "qadd %[c], %[c], %[c]\n\t"
        "qadd %[d], %[d], %[d]\n\t"
        "subs r10, r10, #1\n\t"
        "bne 5b\n"
        "6:\n\t"
        "smmlar %[a], %[a], %[w0], r8\n\t"
        "smmlar %[b], %[b], %[w1], r8\n\t"
        "smmlar %[c], %[c], %[w0], r8\n\t"
        "smmlar %[d], %[d], %[w1], r8\n\t"
        "ssat %[a], #8, %[a]\n\t"
        "ssat %[b], #8, %[b]\n\t"
        "ssat %[c], #8, %[c]\n\t"
        "ssat %[d], #8, %[d]\n\t"
        "ldr r8, " MCUD_Y "\n\t"
        "ldr r10, " MCUD_PITCH "\n\t"
        "ldr r11, " MCUD_LAST "\n\t"
        "add r10, r10, r8\n\t"
        "strb %[a], [r8], #1\n\t"
        "strb %[b], [r8], #1\n\t"
        "str r8, " MCUD_Y "\n\t"
        "strb %[c], [r10]\n\t"
        "strb %[d], [r10, #1]\n\t"
        "cmp r8, r11\n\t"
        "bne 0b\n\t"
        MCUD_LEAVE
        : [x] MCUD_AT(x), [w] "+r"(record), MCUD_Y_OPERAND [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),
          [d] "=&r"(d), [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(t)
        : MCUD_OPERANDS
        : "r8", "r10", "r11", "lr", "cc", "memory");
    return record;
}

/* One group of one pixel and four channels: 23 instructions for 16 products; five consecutive single loads take six
 * cycles on Cortex-M4. */
#define MCUD_GROUP_1X4                                                                                       \
    "ldr %[x1], [%[x]], #4\n\t"                                                                              \
    "ldr r10, [%[w], #4]\n\t"                                                                                \
    "ldr r11, [%[w], #8]\n\t"                                                                                \
    "ldr lr, [%[w], #12]\n\t"                                                                                \
    "ldr r8, [%[w]], #16\n\t"                                                                                \
    "sxtb16 %[x0], %[x1]\n\t"                                                                                \
    "sxtb16 %[x1], %[x1], ror #8\n\t"                                                                        \
    "sxtb16 %[t], r8\n\t"                                                                                    \
    "sxtb16 r8, r8, ror #8\n\t"                                                                              \
    "smlad %[a], %[x0], %[t], %[a]\n\t"                                                                      \
    "sxtb16 %[t], r10\n\t"                                                                                   \
    "sxtb16 r10, r10, ror #8\n\t"                                                                            \
    "smlad %[b], %[x0], %[t], %[b]\n\t"                                                                      \
    "sxtb16 %[t], r11\n\t"                                                                                   \
    "sxtb16 r11, r11, ror #8\n\t"                                                                            \
    "smlad %[c], %[x0], %[t], %[c]\n\t"                                                                      \
    "sxtb16 %[t], lr\n\t"                                                                                    \
    "sxtb16 lr, lr, ror #8\n\t"                                                                              \
    "smlad %[d], %[x0], %[t], %[d]\n\t"                                                                      \
    "smlad %[a], %[x1], r8, %[a]\n\t"                                                                        \
    "smlad %[b], %[x1], r10, %[b]\n\t"                                                                       \
    "smlad %[c], %[x1], r11, %[c]\n\t"                                                                       \
    "smlad %[d], %[x1], lr, %[d]\n\t"

#define MCUD_EIGHT_1X4 MCUD_REPEAT("8", MCUD_GROUP_1X4, MCUD_LINES_140)

/* Multiplies x[groups][4] with channels, a multiple of four, to y[channels]. */
MCUD_BLOCK const int32_t *mcud_records_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *record,
                                           const mcud_finish_s8 *finish, int8_t *y, int32_t channels)
{
    const int8_t *const first = x;
    const int8_t *const last = y + channels;
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;
    int32_t x0;
    int32_t x1;
    int32_t t;
#if defined(__clang__)
    MCUD_FRAME(ends[0], ends[1], first, last, finish, y);
    x = (const void *)frame;
#endif
    __asm__ volatile(
        MCUD_ENTER("x", "a", "b")
        "0:\n\t"
        "ldr %[x], " MCUD_FIRST "\n\t"
        "ldrd %[a], %[b], [%[w]], #8\n\t"
        "ldrd %[c], %[d], [%[w]], #8\n\t"
        MCUD_LOOPS("x", "t", MCUD_GROUP_1X4, MCUD_EIGHT_1X4)
        "ldm %[w]!, {r8, r10, r11, lr}\n\t"
        MCUD_IF_TWICE(
        "smmlar %[a], %[a], r8, %[a]\n\t"
        "smmlar %[b], %[b], r10, %[b]\n\t"
        "smmlar %[c], %[c], r11, %[c]\n\t"
        "smmlar %[d], %[d], lr, %[d]\n\t"
        "ldm %[w]!, {r8, r10, r11, lr}\n\t")
        "ldrd %[x0], %[x1], " MCUD_FINISH "\n\t"
        "cmp %[x1], #0\n\t"
        "beq 6f\n"
        "5:\n\t"
        "qadd %[a], %[a], %[a]\n\t"
        "qadd %[b], %[b], %[b]\n\t"
        "qadd %[c], %[c], %[c]\n\t"
        "qadd %[d], %[d], %[d]\n\t"
        "subs %[x1], %[x1], #1\n\t"
        "bne 5b\n"
        "6:\n\t"
        "smmlar %[a], %[a], r8, %[x0]\n\t"
        "smmlar %[b], %[b], r10, %[x0]\n\t"
        "smmlar %[c], %[c], r11, %[x0]\n\t"
        "smmlar %[d], %[d], lr, %[x0]\n\t"
        "ssat %[a], #8, %[a]\n\t"
        "ssat %[b], #8, %[b]\n\t"
        "ssat %[c], #8, %[c]\n\t"
        "ssat %[d], #8, %[d]\n\t"
        "ldr r8, " MCUD_Y "\n\t"
        "ldr r10, " MCUD_LAST "\n\t"
        "strb %[a], [r8], #1\n\t"
        "strb %[b], [r8], #1\n\t"
        "strb %[c], [r8], #1\n\t"
        "strb %[d], [r8], #1\n\t"
        "str r8, " MCUD_Y "\n\t"
        "cmp r8, r10\n\t"
        "bne 0b\n\t"
        MCUD_LEAVE
        : [x] MCUD_AT(x), [w] "+r"(record), MCUD_Y_OPERAND [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),
          [d] "=&r"(d), [x0] "=&r"(x0), [x1] "=&r"(x1), [t] "=&r"(t)
        : MCUD_OPERANDS
        : "r8", "r10", "r11", "lr", "cc", "memory");
    return record;
}

/* Adds the products of x[groups][4] and w[groups][4][4]; ends as above. */
MCUD_BLOCK void mcud_sum_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *w, int32_t sums[4])
{
    int32_t x0;
    int32_t x1;
    int32_t t;
#if defined(__clang__)
    const mcud_finish_s8 none = {0, 0, 0};
    MCUD_FRAME(ends[0], ends[1], 0, 0, &none, 0);
    t = (int32_t)frame;
#endif
    __asm__ volatile(
        MCUD_ENTER("t", "x0", "x1")
        MCUD_LOOPS("x", "t", MCUD_GROUP_1X4, MCUD_EIGHT_1X4)
        MCUD_LEAVE
        : [x] "+r"(x), [w] "+r"(w), [a] "+r"(sums[0]), [b] "+r"(sums[1]), [c] "+r"(sums[2]),
          [d] "+r"(sums[3]), [x0] "=&r"(x0), [x1] "=&r"(x1), [t] MCUD_AT(t)
        : MCUD_ENDS
        : "r8", "r10", "r11", "lr", "cc", "memory");
}

#else
#include "mcud_blocks_dsp.h"
#endif

/* Adds the products of four channels, `at` bytes after the first `count` taps of a window; see mcud_record_taps. */
static inline void mcud_sum_taps(const int8_t *const *taps, int32_t count, int32_t at, const int32_t *record,
                                 int32_t sums[4])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    for (; count > 1; taps += 2, record += 2, count -= 2) {
        const int32_t first = mcud_load_word(taps[0] + at);
        const int32_t second = mcud_load_word(taps[1] + at);
        const int32_t even = mcud_even_bytes(first);
        const int32_t odd = mcud_odd_bytes(first);
        const int32_t other_even = mcud_even_bytes(second);
        const int32_t other_odd = mcud_odd_bytes(second);
        a = mcud_add_products(mcud_lower_halves(even, other_even), mcud_even_bytes(record[0]), a);
        b = mcud_add_products(mcud_lower_halves(odd, other_odd), mcud_odd_bytes(record[0]), b);
        c = mcud_add_products(mcud_upper_halves(even, other_even), mcud_even_bytes(record[1]), c);
        d = mcud_add_products(mcud_upper_halves(odd, other_odd), mcud_odd_bytes(record[1]), d);
    }
    if (count > 0) {
        const int8_t *last = taps[0] + at;
        const int8_t *w = (const int8_t *)record;
        a += last[0] * w[0];
        b += last[1] * w[1];
        c += last[2] * w[2];
        d += last[3] * w[3];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* Multiplies the first of 2 expanded pixels with an even number of channels to y[channels]. */
static inline const int32_t *mcud_records_1x2(const int16_t *x, const int16_t *const ends[2],
                                              const int32_t *record, const mcud_finish_s8 *finish, int8_t *y,
                                              int32_t channels)
{
    const int32_t *const end = (const int32_t *)(const void *)ends[1];
    for (const int8_t *last = y + channels; y < last; y += 2, record += 2 * MCUD_FACTORS) {
        const int32_t *pairs = (const int32_t *)(const void *)x;
        int32_t a = record[0];
        int32_t b = record[1];
        for (record += 2; pairs < end; pairs += 4, record += 2) {
            a = mcud_add_products(pairs[0], mcud_even_bytes(record[0]), a);
            b = mcud_add_products(pairs[0], mcud_even_bytes(record[1]), b);
            a = mcud_add_products(pairs[2], mcud_odd_bytes(record[0]), a);
            b = mcud_add_products(pairs[2], mcud_odd_bytes(record[1]), b);
        }
        y[0] = MCUD_RESULT_S8(a, record, 2, finish);
        y[1] = MCUD_RESULT_S8(b, record + 1, 2, finish);
    }
    return record;
}

#endif
