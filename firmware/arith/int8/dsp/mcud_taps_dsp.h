/* The windows of depthwise convolutions by the DSP extension: a part of mcud_simd_dsp.h. */
#ifndef MCUD_TAPS_DSP_H
#define MCUD_TAPS_DSP_H

#include "mcud_dsp.h"

/* One pair of taps, four channels: 18 instructions for 8 products. */
#define MCUD_TAP_PAIR                                                                                        \
    "ldrd %[x], %[z], [%[taps]], #8\n\t"                                                                     \
    "ldr %[x], [%[x], %[at]]\n\t"                                                                            \
    "ldr %[z], [%[z], %[at]]\n\t"                                                                            \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "pkhbt %[t], %[x], %[z], lsl #16\n\t"                                                                    \
    "pkhtb %[z], %[z], %[x], asr #16\n\t"                                                                    \
    "sxtb16 %[x], %[t]\n\t"                                                                                  \
    "sxtb16 %[u], %[w0]\n\t"                                                                                 \
    "sxtb16 %[t], %[t], ror #8\n\t"                                                                          \
    "sxtb16 %[w0], %[w0], ror #8\n\t"                                                                        \
    "smlad %[a], %[x], %[u], %[a]\n\t"                                                                       \
    "smlad %[b], %[t], %[w0], %[b]\n\t"                                                                      \
    "sxtb16 %[x], %[z]\n\t"                                                                                  \
    "sxtb16 %[u], %[w1]\n\t"                                                                                 \
    "sxtb16 %[z], %[z], ror #8\n\t"                                                                          \
    "sxtb16 %[w1], %[w1], ror #8\n\t"                                                                        \
    "smlad %[c], %[x], %[u], %[c]\n\t"                                                                       \
    "smlad %[d], %[z], %[w1], %[d]\n\t"

#if defined(__clang__)
#define MCUD_TAPS_OPERANDS
#else
#define MCUD_TAPS_OPERANDS                                                                                   \
    , [some] "m"(ends[0]), [end] "m"(ends[1]), [finish] "m"(finish->zero_point), [left] "m"(finish->left),   \
        [first] "m"(odd), [y] "m"(y)
#endif

/* Computes y[4] from four channels, `at` bytes after the taps of a window. Takes two taps at a time: their weights are
 * (first, first, second, second) of channels 0 and 1, then of channels 2 and 3. `odd` is the last tap if their number
 * is odd, else NULL. */
MCUD_BLOCK const int32_t *mcud_record_taps(const int8_t *const *taps, const int8_t *const *const ends[2],
                                           const int8_t *odd, int32_t at, const int32_t *record,
                                           const mcud_finish_s8 *finish, int8_t *y)
{
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;
    int32_t x;
    int32_t z;
    int32_t t;
    int32_t u;
    int32_t w0;
    int32_t w1;
#if defined(__clang__)
    MCUD_FRAME(ends[0], ends[1], odd, 0, finish, y);
    x = (int32_t)frame;
#endif
    __asm__ volatile(
        MCUD_ENTER("x", "z", "t")
        "ldrd %[a], %[b], [%[w]], #8\n\t"
        "ldrd %[c], %[d], [%[w]], #8\n\t"
        MCUD_LOOPS("taps", "t", MCUD_TAP_PAIR, MCUD_REPEAT("4", MCUD_TAP_PAIR, MCUD_LINES_60))
        "ldr %[x], " MCUD_FIRST "\n\t"
        "cmp %[x], #0\n\t"
        "beq 7f\n\t"
        "ldr %[x], [%[x], %[at]]\n\t"
        "ldr %[w0], [%[w]], #4\n\t"
        "sxtb16 %[z], %[x]\n\t"
        "sxtb16 %[u], %[w0]\n\t"
        "sxtb16 %[x], %[x], ror #8\n\t"
        "sxtb16 %[w0], %[w0], ror #8\n\t"
        "smlabb %[a], %[z], %[u], %[a]\n\t"
        "smlabb %[b], %[x], %[w0], %[b]\n\t"
        "smlatt %[c], %[z], %[u], %[c]\n\t"
        "smlatt %[d], %[x], %[w0], %[d]\n"
        "7:\n\t"
        "ldrd %[x], %[z], [%[w]], #8\n\t"
        "ldrd %[w0], %[w1], [%[w]], #8\n\t"
        MCUD_IF_TWICE(
        "smmlar %[a], %[a], %[x], %[a]\n\t"
        "smmlar %[b], %[b], %[z], %[b]\n\t"
        "smmlar %[c], %[c], %[w0], %[c]\n\t"
        "smmlar %[d], %[d], %[w1], %[d]\n\t"
        "ldrd %[x], %[z], [%[w]], #8\n\t"
        "ldrd %[w0], %[w1], [%[w]], #8\n\t")
        "ldr %[t], " MCUD_LEFT "\n\t"
        "cmp %[t], #0\n\t"
        "beq 6f\n"
        "5:\n\t"
        "qadd %[a], %[a], %[a]\n\t"
        "qadd %[b], %[b], %[b]\n\t"
        "qadd %[c], %[c], %[c]\n\t"
        "qadd %[d], %[d], %[d]\n\t"
        "subs %[t], %[t], #1\n\t"
        "bne 5b\n"
        "6:\n\t"
        "ldr %[t], " MCUD_FINISH "\n\t"
        "smmlar %[a], %[a], %[x], %[t]\n\t"
        "smmlar %[b], %[b], %[z], %[t]\n\t"
        "smmlar %[c], %[c], %[w0], %[t]\n\t"
        "smmlar %[d], %[d], %[w1], %[t]\n\t"
        "ssat %[a], #8, %[a]\n\t"
        "ssat %[b], #8, %[b]\n\t"
        "ssat %[c], #8, %[c]\n\t"
        "ssat %[d], #8, %[d]\n\t"
        "ldr %[x], " MCUD_Y "\n\t"
        "strb %[a], [%[x]]\n\t"
        "strb %[b], [%[x], #1]\n\t"
        "strb %[c], [%[x], #2]\n\t"
        "strb %[d], [%[x], #3]\n\t"
        MCUD_LEAVE
        : [taps] "+r"(taps), [w] "+r"(record), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d),
          [x] MCUD_AT(x), [z] "=&r"(z), [t] "=&r"(t), [u] "=&r"(u), [w0] "=&r"(w0), [w1] "=&r"(w1)
        : [at] "r"(at) MCUD_TAPS_OPERANDS
        : "cc", "memory");
    return record;
}

#endif
