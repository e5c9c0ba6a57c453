/* mcud_row_pairs_s8.h for Arm cores with the DSP extension.
 *
 * Loops over channels and columns are functions of assembler alone, because they take all registers: r0 columns,
 * r1 results, r2 to r7 the weights (w0, w1) and (w1, w2) of three columns, r8 to r11 sums, r12 and lr two pairs of
 * rows. */
#ifndef MCUD_ROW_PAIRS_DSP_H
#define MCUD_ROW_PAIRS_DSP_H

#include "mcud_dsp.h"
#include "mcud_pair_row.h"

#define MCUD_ROWS(name) MCUD_NAKED static void name MCUD_ROWS_ARGUMENTS
#define MCUD_ROWS_ARGUMENTS                                                                                  \
    (MCUD_UNUSED const int32_t *x, MCUD_UNUSED int8_t *y, MCUD_UNUSED const int32_t *record,                 \
     MCUD_UNUSED const mcud_pair_outputs *by)

static inline void mcud_expand_words(int32_t *to, int32_t upper, int32_t lower)
{
    const int32_t first = mcud_lower_halves(upper, lower);
    const int32_t last = mcud_upper_halves(upper, lower);
    to[0] = mcud_even_bytes(first);
    to[2] = mcud_odd_bytes(first);
    to[4] = mcud_even_bytes(last);
    to[6] = mcud_odd_bytes(last);
}

static inline void mcud_expand_word(int32_t *to, int32_t word)
{
    const int32_t even = mcud_even_bytes(word);
    const int32_t odd = mcud_odd_bytes(word);
    to[0] = even;
    to[2] = odd;
    to[4] = even >> 16;
    to[6] = odd >> 16;
}

static inline void mcud_expand_row(int32_t *to, mcud_pair_row row, int32_t columns, int32_t channels)
{
    const int32_t *const end = to + columns * MCUD_PAIR_COLUMN;
    if (channels < 4) {
        for (; to < end; to += MCUD_PAIR_COLUMN, row.at += row.step) {
            mcud_expand_word(to, mcud_load_some(row.at, channels));
        }
        return;
    }
    for (; to < end; to += MCUD_PAIR_COLUMN, row.at += row.step) {
        mcud_expand_word(to, mcud_load_word(row.at));
    }
}

/* For fewer than four channels; a separate function, because the others need fewer registers. */
__attribute__((noinline)) static void mcud_expand_some(int32_t *to, mcud_pair_row upper, mcud_pair_row lower,
                                                       int32_t columns, int32_t channels)
{
    for (; columns > 0; columns--, to += MCUD_PAIR_COLUMN, upper.at += upper.step, lower.at += lower.step) {
        mcud_expand_words(to, mcud_load_some(upper.at, channels), mcud_load_some(lower.at, channels));
    }
}

static inline void mcud_expand_pair(int32_t *to, mcud_pair_row upper, mcud_pair_row lower, int32_t columns,
                                    int32_t channels)
{
    if (channels < 4) {
        mcud_expand_some(to, upper, lower, columns, channels);
        return;
    }
    for (; columns > 0; columns--, to += MCUD_PAIR_COLUMN, upper.at += upper.step, lower.at += lower.step) {
        mcud_expand_words(to, mcud_load_word(upper.at), mcud_load_word(lower.at));
    }
}

/* For at least one column: 19 instructions for 12 values. */
MCUD_NAKED static void mcud_expand_three(MCUD_UNUSED int32_t *to, MCUD_UNUSED const int8_t *first,
                                         MCUD_UNUSED const int8_t *second, MCUD_UNUSED const int8_t *third,
                                         MCUD_UNUSED int32_t step, MCUD_UNUSED int32_t columns)
{
    __asm__("push {r4-r11, lr}\n\t"
            "ldr r4, [sp, #36]\n\t"
            "ldr lr, [sp, #40]\n"
            "1:\n\t"
            "ldr r5, [r1]\n\t"
            "ldr r9, [r2]\n\t"
            "ldr r12, [r3]\n\t"
            "add r1, r1, r4\n\t"
            "add r2, r2, r4\n\t"
            "add r3, r3, r4\n\t"
            "pkhbt r7, r5, r9, lsl #16\n\t"
            "pkhtb r11, r9, r5, asr #16\n\t"
            "sxtb16 r6, r12\n\t"
            "sxtb16 r8, r12, ror #8\n\t"
            "sxtb16 r5, r7\n\t"
            "sxtb16 r7, r7, ror #8\n\t"
            "sxtb16 r9, r11\n\t"
            "sxtb16 r11, r11, ror #8\n\t"
            "asr r10, r6, #16\n\t"
            "asr r12, r8, #16\n\t"
            "subs lr, lr, #1\n\t"
            "stm r0!, {r5-r12}\n\t"
            "bne 1b\n\t"
            "pop {r4-r11, pc}");
}

/* Pushes the part of the frame that holds x, y, record, the end of the records and the other fields of *by. With
 * MCUD_TWICE the records have a further word, a power of two. */
#if MCUD_FACTORS == 2
#define MCUD_PAIR_PUSH                                                                                       \
    "add r4, r4, r4, lsl #1\n\t"                                                                             \
    "add r4, r2, r4, lsl #3\n\t"                                                                             \
    "push {r0-r2, r4-r9}\n\t"
#else
#define MCUD_PAIR_PUSH                                                                                       \
    "add r4, r4, r4, lsl #2\n\t"                                                                             \
    "add r4, r2, r4, lsl #2\n\t"                                                                             \
    "push {r0-r2, r4-r8}\n\t"
#endif

/* Begins a channel. The frame: bias, multiplier, columns of the last output; x, y and record, which advance; the end of
 * the records, and the other fields of *by. Jumps to label 3 if the columns of all outputs have at most `few` bytes. */
#define MCUD_PAIR_CHANNEL(few, last)                                                                            \
    "push {r4-r11, lr}\n\t"                                                                                  \
    "ldm r3, {r4-r8}\n\t"                                                                                    \
    MCUD_PAIR_PUSH                                                                                           \
    "sub sp, sp, #12\n"                                                                                      \
    "0:\n\t"                                                                                                 \
    "ldr r10, [sp, #40]\n\t"                                                                                 \
    "ldm r2!, {r5-r9}\n\t"                                                                                   \
    MCUD_IF_TWICE("ldr r11, [r2], #4\n\tstr r11, [sp, #44]\n\t")                                             \
    "str r2, [sp, #20]\n\t"                                                                                  \
    "add r11, r10, r0\n\t"                                                                                   \
    "sub r11, r11, #" last "\n\t"                                                                            \
    "stm sp, {r5, r9, r11}\n\t"                                                                              \
    "sxtb16 r2, r6\n\t"                                                                                      \
    "sxtb16 r5, r6, ror #8\n\t"                                                                              \
    "sxtb16 r3, r7\n\t"                                                                                      \
    "sxtb16 r6, r7, ror #8\n\t"                                                                              \
    "sxtb16 r4, r8\n\t"                                                                                      \
    "sxtb16 r7, r8, ror #8\n\t"                                                                              \
    "cmp r10, #" few "\n\t"                                                                               \
    "ble 3f\n"

#define MCUD_PAIR_NEXT_CHANNEL                                                                               \
    "ldr r0, [sp, #12]\n\t"                                                                                  \
    "ldr r1, [sp, #16]\n\t"                                                                                  \
    "ldr r2, [sp, #20]\n\t"                                                                                  \
    "ldr r3, [sp, #24]\n\t"                                                                                  \
    "add r0, r0, #8\n\t"                                                                                     \
    "add r1, r1, #1\n\t"                                                                                     \
    "cmp r2, r3\n\t"                                                                                         \
    "strd r0, r1, [sp, #12]\n\t"                                                                             \
    "bne 0b\n\t"                                                                                             \
    "add sp, sp, #44\n\t" MCUD_IF_TWICE("add sp, sp, #4\n\t")                                              \
    "pop {r4-r11, pc}"

#define MCUD_PAIR_LOAD(a, b, column)                                                                         \
    "ldr " a ", [r0, #32 * " column "]\n\t"                                                                  \
    "ldr " b ", [r0, #32 * " column " + 4]\n\t"


/* Adds a column to the sums of an upper and a lower output: (w0, w1) and (w1, w2) of that column. */
#define MCUD_PAIR_TWO(upper, lower, a, b, w01, w12)                                                          \
    "smlad " upper ", " a ", " w01 ", " upper "\n\t"                                                         \
    "smlatb " lower ", " a ", " w01 ", " lower "\n\t"                                                        \
    "smlabt " upper ", " b ", " w12 ", " upper "\n\t"                                                        \
    "smlad " lower ", " b ", " w12 ", " lower "\n\t"

/* The first column of both outputs: the sums begin with the bias. */
#define MCUD_PAIR_TWO_FROM(bias, upper, lower, a, b, w01, w12)                                               \
    "smlad " upper ", " a ", " w01 ", " bias "\n\t"                                                          \
    "smlatb " lower ", " a ", " w01 ", " bias "\n\t"                                                         \
    "smlabt " upper ", " b ", " w12 ", " upper "\n\t"                                                        \
    "smlad " lower ", " b ", " w12 ", " lower "\n\t"

/* The same for one output. */
#define MCUD_PAIR_ONE(sum, a, b, w01, w12)                                                                   \
    "smlad " sum ", " a ", " w01 ", " sum "\n\t"                                                             \
    "smlabt " sum ", " b ", " w12 ", " sum "\n\t"

#define MCUD_PAIR_ONE_FROM(bias, sum, a, b, w01, w12)                                                        \
    "smlad " sum ", " a ", " w01 ", " bias "\n\t"                                                            \
    "smlabt " sum ", " b ", " w12 ", " sum "\n\t"

#define MCUD_PAIR_1(of) of("r8")
#define MCUD_PAIR_2(of) of("r8") of("r9")
#define MCUD_PAIR_2_ROWS(of) of("r8") of("r10")
#define MCUD_PAIR_4(of) of("r8") of("r9") of("r10") of("r11")
#define MCUD_PAIR_HIGH(sum) "smmlar " sum ", " sum ", r12, " sum "\n\t"
#define MCUD_PAIR_RESULT(sum) "smmlar " sum ", " sum ", r12, lr\n\t"
/* Sums to results; `between` separates a load and the use of its value. */
#define MCUD_PAIR_FINISH(sums, between)                                                                      \
    "ldr r12, [sp, #4]\n\t"                                                                                  \
    MCUD_IF_TWICE(sums(MCUD_PAIR_HIGH) "ldr r12, [sp, #44]\n\t")                                             \
    "ldr lr, [sp, #28]\n\t" between sums(MCUD_PAIR_RESULT)
#define MCUD_PAIR_CLAMP(sum) "ssat " sum ", #8, " sum "\n\t"

/* Two columns at a time, then one. */
#define MCUD_TWO_ROWS(a, b)                                                                                  \
    MCUD_PAIR_CHANNEL("32", "32")                                                                            \
    "1:\n\t"                                                                                                 \
    "ldr r11, [sp]\n\t"                                                                                      \
    MCUD_PAIR_LOAD("r12", "lr", "0")                                                                         \
    MCUD_PAIR_TWO_FROM("r11", "r8", "r10", a, b, "r2", "r5")                                                 \
    MCUD_PAIR_LOAD("r12", "lr", "1")                                                                         \
    MCUD_PAIR_TWO("r8", "r10", a, b, "r3", "r6")                                                             \
    MCUD_PAIR_TWO_FROM("r11", "r9", "r11", a, b, "r2", "r5")                                                 \
    MCUD_PAIR_LOAD("r12", "lr", "2")                                                                         \
    MCUD_PAIR_TWO("r8", "r10", a, b, "r4", "r7")                                                             \
    MCUD_PAIR_TWO("r9", "r11", a, b, "r3", "r6")                                                             \
    MCUD_PAIR_LOAD("r12", "lr", "3")                                                                         \
    MCUD_PAIR_TWO("r9", "r11", a, b, "r4", "r7")                                                             \
    MCUD_PAIR_FINISH(MCUD_PAIR_4, "add r0, r0, #64\n\t")                                                     \
    "ldr r12, [sp, #32]\n\t"                                                                                 \
    "ldr lr, [sp, #36]\n\t"                                                                                  \
    "add lr, lr, r1\n\t"                                                                                     \
    MCUD_PAIR_CLAMP("r8") MCUD_PAIR_CLAMP("r9") MCUD_PAIR_CLAMP("r10") MCUD_PAIR_CLAMP("r11")                \
    "strb r10, [lr]\n\t"                                                                                     \
    "strb r11, [lr, r12]\n\t"                                                                                \
    "strb r8, [r1]\n\t"                                                                                      \
    "strb r9, [r1, r12]\n\t"                                                                                 \
    "ldr lr, [sp, #8]\n\t"                                                                                   \
    "add r1, r1, r12, lsl #1\n\t"                                                                            \
    "cmp lr, r0\n\t"                                                                                         \
    "bhi 1b\n\t"                                                                                             \
    "bne 4f\n"                                                                                               \
    "3:\n\t"                                                                                                 \
    "ldr r11, [sp]\n\t"                                                                                      \
    MCUD_PAIR_LOAD("r12", "lr", "0")                                                                         \
    MCUD_PAIR_TWO_FROM("r11", "r8", "r10", a, b, "r2", "r5")                                                 \
    MCUD_PAIR_LOAD("r12", "lr", "1")                                                                         \
    MCUD_PAIR_TWO("r8", "r10", a, b, "r3", "r6")                                                             \
    MCUD_PAIR_LOAD("r12", "lr", "2")                                                                         \
    MCUD_PAIR_TWO("r8", "r10", a, b, "r4", "r7")                                                             \
    MCUD_PAIR_FINISH(MCUD_PAIR_2_ROWS, "")                                                                   \
    "ldr lr, [sp, #36]\n\t"                                                                                  \
    MCUD_PAIR_CLAMP("r8") MCUD_PAIR_CLAMP("r10")                                                             \
    "strb r10, [r1, lr]\n\t"                                                                                 \
    "strb r8, [r1]\n"                                                                                        \
    "4:\n\t"                                                                                                 \
    MCUD_PAIR_NEXT_CHANNEL

MCUD_ROWS(mcud_two_rows_upper_first)
{
    __asm__(MCUD_TWO_ROWS("r12", "lr"));
}

MCUD_ROWS(mcud_two_rows_lower_first)
{
    __asm__(MCUD_TWO_ROWS("lr", "r12"));
}

/* Four columns at a time, then one. */
MCUD_ROWS(mcud_row_by_steps_of_1)
{
    __asm__(
        MCUD_PAIR_CHANNEL("96", "0") /* fewer than four */
        "1:\n\t"
        "ldr r11, [sp]\n\t"
        MCUD_PAIR_LOAD("r12", "lr", "0")
        MCUD_PAIR_ONE_FROM("r11", "r8", "r12", "lr", "r2", "r5")
        MCUD_PAIR_LOAD("r12", "lr", "1")
        MCUD_PAIR_ONE("r8", "r12", "lr", "r3", "r6")
        MCUD_PAIR_ONE_FROM("r11", "r9", "r12", "lr", "r2", "r5")
        MCUD_PAIR_LOAD("r12", "lr", "2")
        MCUD_PAIR_ONE("r8", "r12", "lr", "r4", "r7")
        MCUD_PAIR_ONE("r9", "r12", "lr", "r3", "r6")
        MCUD_PAIR_ONE_FROM("r11", "r10", "r12", "lr", "r2", "r5")
        MCUD_PAIR_LOAD("r12", "lr", "3")
        MCUD_PAIR_ONE("r9", "r12", "lr", "r4", "r7")
        MCUD_PAIR_ONE("r10", "r12", "lr", "r3", "r6")
        MCUD_PAIR_ONE_FROM("r11", "r11", "r12", "lr", "r2", "r5")
        MCUD_PAIR_LOAD("r12", "lr", "4")
        MCUD_PAIR_ONE("r10", "r12", "lr", "r4", "r7")
        MCUD_PAIR_ONE("r11", "r12", "lr", "r3", "r6")
        MCUD_PAIR_LOAD("r12", "lr", "5")
        MCUD_PAIR_ONE("r11", "r12", "lr", "r4", "r7")
        MCUD_PAIR_FINISH(MCUD_PAIR_4, "add r0, r0, #128\n\t")
        "ldr r12, [sp, #32]\n\t"
        MCUD_PAIR_CLAMP("r8") MCUD_PAIR_CLAMP("r9") MCUD_PAIR_CLAMP("r10") MCUD_PAIR_CLAMP("r11")
        "strb r9, [r1, r12]\n\t"
        "strb r8, [r1]\n\t"
        "add r1, r1, r12, lsl #1\n\t"
        "strb r11, [r1, r12]\n\t"
        "strb r10, [r1]\n\t"
        "ldr r10, [sp, #8]\n\t"
        "add r1, r1, r12, lsl #1\n\t"
        "subs r10, r10, r0\n\t"
        "beq 4f\n\t"
        "cmp r10, #128\n\t"
        "bge 1b\n"
        "3:\n\t"
        "mov r11, r10\n"
        "2:\n\t"
        "ldr r8, [sp]\n\t"
        MCUD_PAIR_LOAD("r12", "lr", "0")
        MCUD_PAIR_LOAD("r9", "r10", "1")
        MCUD_PAIR_ONE("r8", "r12", "lr", "r2", "r5")
        MCUD_PAIR_LOAD("r12", "lr", "2")
        MCUD_PAIR_ONE("r8", "r9", "r10", "r3", "r6")
        "add r0, r0, #32\n\t"
        MCUD_PAIR_ONE("r8", "r12", "lr", "r4", "r7")
        MCUD_PAIR_FINISH(MCUD_PAIR_1, "ldr r9, [sp, #32]\n\t")
        "subs r11, r11, #32\n\t"
        MCUD_PAIR_CLAMP("r8")
        "strb r8, [r1]\n\t"
        "add r1, r1, r9\n\t"
        "bne 2b\n"
        "4:\n\t"
        MCUD_PAIR_NEXT_CHANNEL);
}

/* Two columns at a time, then one. */
#define MCUD_ROW_BY_STEPS_OF_2(a, b, c, d)                                                                   \
    MCUD_PAIR_CHANNEL("64", "64")                                                                            \
    "1:\n\t"                                                                                                 \
    "ldr r9, [sp]\n\t"                                                                                       \
    MCUD_PAIR_LOAD("r12", "lr", "0")                                                                         \
    MCUD_PAIR_ONE_FROM("r9", "r8", a, b, "r2", "r5")                                                         \
    MCUD_PAIR_LOAD("r10", "r11", "1")                                                                        \
    MCUD_PAIR_LOAD("r12", "lr", "2")                                                                         \
    MCUD_PAIR_ONE("r8", c, d, "r3", "r6")                                                                    \
    MCUD_PAIR_ONE_FROM("r9", "r9", a, b, "r2", "r5")                                                         \
    MCUD_PAIR_ONE("r8", a, b, "r4", "r7")                                                                    \
    MCUD_PAIR_LOAD("r10", "r11", "3")                                                                        \
    MCUD_PAIR_LOAD("r12", "lr", "4")                                                                         \
    MCUD_PAIR_ONE("r9", c, d, "r3", "r6")                                                                    \
    "add r0, r0, #128\n\t"                                                                                   \
    MCUD_PAIR_ONE("r9", a, b, "r4", "r7")                                                                    \
    MCUD_PAIR_FINISH(MCUD_PAIR_2, "ldr r10, [sp, #32]\n\t")                                                  \
    MCUD_PAIR_CLAMP("r8") MCUD_PAIR_CLAMP("r9")                                                              \
    "strb r9, [r1, r10]\n\t"                                                                                 \
    "strb r8, [r1]\n\t"                                                                                      \
    "ldr lr, [sp, #8]\n\t"                                                                                   \
    "add r1, r1, r10, lsl #1\n\t"                                                                            \
    "cmp lr, r0\n\t"                                                                                         \
    "bhi 1b\n\t"                                                                                             \
    "bne 4f\n"                                                                                               \
    "3:\n\t"                                                                                                 \
    "ldr r8, [sp]\n\t"                                                                                       \
    MCUD_PAIR_LOAD("r12", "lr", "0")                                                                         \
    MCUD_PAIR_LOAD("r10", "r11", "1")                                                                        \
    MCUD_PAIR_ONE("r8", a, b, "r2", "r5")                                                                    \
    MCUD_PAIR_LOAD("r12", "lr", "2")                                                                         \
    MCUD_PAIR_ONE("r8", c, d, "r3", "r6")                                                                    \
    MCUD_PAIR_ONE("r8", a, b, "r4", "r7")                                                                    \
    MCUD_PAIR_FINISH(MCUD_PAIR_1, "") MCUD_PAIR_CLAMP("r8")                                                  \
    "strb r8, [r1]\n"                                                                                        \
    "4:\n\t"                                                                                                 \
    MCUD_PAIR_NEXT_CHANNEL

MCUD_ROWS(mcud_row_by_steps_of_2_upper_first)
{
    __asm__(MCUD_ROW_BY_STEPS_OF_2("r12", "lr", "r10", "r11"));
}

MCUD_ROWS(mcud_row_by_steps_of_2_lower_first)
{
    __asm__(MCUD_ROW_BY_STEPS_OF_2("lr", "r12", "r11", "r10"));
}

static inline void mcud_two_rows_s8(const int32_t *x, int32_t order, int8_t *y, const int32_t *record,
                                    const mcud_pair_outputs *by)
{
    if (order == 0) {
        mcud_two_rows_upper_first(x, y, record, by);
    } else {
        mcud_two_rows_lower_first(x, y, record, by);
    }
}

static inline void mcud_one_row_s8(const int32_t *x, int32_t order, int32_t stride, int8_t *y, const int32_t *record,
                                   const mcud_pair_outputs *by)
{
    if (stride == 1) {
        mcud_row_by_steps_of_1(x, y, record, by);
    } else if (order == 0) {
        mcud_row_by_steps_of_2_upper_first(x, y, record, by);
    } else {
        mcud_row_by_steps_of_2_lower_first(x, y, record, by);
    }
}

#endif
