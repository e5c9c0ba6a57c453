/* mcud_pair_windows_s8.h for Arm cores with the DSP extension.
 *
 * The loops over channels, outputs and pairs are functions of assembler alone, because they take all registers: r0
 * columns, r1 weights, r2 to r5 a column for each of four outputs, r6 and r7 weights of two columns, r8 to r11 sums, r12
 * pairs before the ring's end, lr bytes of a pair. */
#ifndef MCUD_PAIR_WINDOWS_DSP_H
#define MCUD_PAIR_WINDOWS_DSP_H

#include "mcud_dsp.h"
#include "mcud_pair_row.h"

static inline void mcud_expand_column(int32_t *to, int32_t upper, int32_t lower)
{
    const int32_t first = mcud_lower_halves(upper, lower);
    const int32_t last = mcud_upper_halves(upper, lower);
    to[0] = mcud_even_bytes(first);
    to[1] = mcud_odd_bytes(first);
    to[2] = mcud_even_bytes(last);
    to[3] = mcud_odd_bytes(last);
}

/* For fewer than four channels; a separate function, since inlined it takes registers from other calls. */
__attribute__((noinline)) static void mcud_expand_some_channels(int32_t *to, mcud_pair_row upper, mcud_pair_row lower,
                                                                int32_t columns, int32_t channels)
{
    for (; columns > 0; columns--, to += MCUD_WINDOW_COLUMN, upper.at += upper.step, lower.at += lower.step) {
        mcud_expand_column(to, mcud_load_some(upper.at, channels), mcud_load_some(lower.at, channels));
    }
}

/* For at least one column: 13 instructions for eight values. */
MCUD_NAKED static void mcud_expand_four_channels(MCUD_UNUSED int32_t *to, MCUD_UNUSED const int8_t *upper,
                                                 MCUD_UNUSED int32_t upper_step, MCUD_UNUSED const int8_t *lower,
                                                 MCUD_UNUSED int32_t lower_step, MCUD_UNUSED int32_t columns)
{
    __asm__("push {r4-r10, lr}\n\t"
            "ldr r4, [sp, #32]\n\t"
            "ldr r5, [sp, #36]\n"
            "1:\n\t"
            "ldr r6, [r1]\n\t"
            "ldr r7, [r3]\n\t"
            "add r1, r1, r2\n\t"
            "add r3, r3, r4\n\t"
            "pkhbt r8, r6, r7, lsl #16\n\t"
            "pkhtb r9, r7, r6, asr #16\n\t"
            "subs r5, r5, #1\n\t"
            "sxtb16 r6, r8\n\t"
            "sxtb16 r7, r8, ror #8\n\t"
            "sxtb16 r8, r9\n\t"
            "sxtb16 r9, r9, ror #8\n\t"
            "stm r0!, {r6-r9}\n\t"
            "bne 1b\n\t"
            "pop {r4-r10, pc}");
}

static inline void mcud_expand_columns(int32_t *to, mcud_pair_row upper, mcud_pair_row lower, int32_t columns,
                                       int32_t channels)
{
    if (channels < 4) {
        mcud_expand_some_channels(to, upper, lower, columns, channels);
    } else if (columns > 0) {
        mcud_expand_four_channels(to, upper.at, upper.step, lower.at, lower.step, columns);
    }
}

/* The frame: bias, multiplier, zero point, pitch; pairs after the ring's end, which remain; pairs before and after it;
 * bytes of the ring and of a pair; x, y, outputs and record of the channel; channels; outputs, x and y of the block;
 * weights. */
#define MCUD_WINDOWS_BEGIN                                                                                   \
    "push {r4-r11, lr}\n\t"                                                                                  \
    "sub sp, sp, #72\n\t" MCUD_IF_TWICE("sub sp, sp, #4\n\t")                                                \
    "ldm r3, {r4-r10}\n\t"                                                                                   \
    "mul r11, r6, r7\n\t"                                                                                    \
    "mla r0, r10, r7, r0\n\t"                                                                                \
    "sub r6, r6, r10\n\t"                                                                                    \
    "strd r4, r5, [sp, #8]\n\t"                                                                              \
    "strd r6, r10, [sp, #20]\n\t"                                                                            \
    "strd r11, r7, [sp, #28]\n\t"                                                                            \
    "strd r0, r1, [sp, #36]\n\t"                                                                             \
    "strd r8, r2, [sp, #44]\n\t"                                                                             \
    "str r9, [sp, #52]\n"                                                                                    \
    "0:\n\t" /* a channel */                                                                                 \
    "ldr r2, [sp, #48]\n\t"                                                                                  \
    "ldr r3, [sp, #36]\n\t"                                                                                  \
    "ldr r4, [sp, #40]\n\t"                                                                                  \
    "ldr r5, [sp, #44]\n\t"                                                                                  \
    "ldm r2!, {r6, r7}\n\t"                                                                                  \
    MCUD_IF_TWICE("ldr r8, [r2], #4\n\tstr r8, [sp, #72]\n\t")                                               \
    "strd r6, r7, [sp]\n\t"                                                                                  \
    "strd r5, r3, [sp, #56]\n\t"                                                                             \
    "strd r4, r2, [sp, #64]\n"                                                                               \
    "1:\n\t" /* four outputs */                                                                              \
    "ldr r0, [sp, #60]\n\t"                                                                                  \
    "ldr r1, [sp, #68]\n\t"                                                                                  \
    "ldr r8, [sp]\n\t"                                                                                       \
    "ldr r12, [sp, #20]\n\t"                                                                                 \
    "ldr r2, [sp, #24]\n\t"                                                                                  \
    "ldr lr, [sp, #32]\n\t"                                                                                  \
    "mov r9, r8\n\t"                                                                                         \
    "mov r10, r8\n\t"                                                                                        \
    "mov r11, r8\n\t"                                                                                        \
    "str r2, [sp, #16]\n"                                                                                    \
    "2:\n\t" /* a pair of rows */

#define MCUD_WINDOWS_END(block_bytes)                                                                        \
    "add r0, r0, lr\n\t"                                                                                     \
    "subs r12, r12, #1\n\t"                                                                                  \
    "bne 2b\n\t"                                                                                             \
    "ldr r2, [sp, #16]\n\t"                                                                                  \
    "cbz r2, 3f\n\t"                                                                                         \
    "ldr r3, [sp, #28]\n\t"                                                                                  \
    "str r12, [sp, #16]\n\t"                                                                                 \
    "mov r12, r2\n\t"                                                                                        \
    "sub r0, r0, r3\n\t"                                                                                     \
    "b 2b\n"                                                                                                 \
    "3:\n\t"                                                                                                 \
    "ldr r2, [sp, #4]\n\t"                                                                                   \
    "ldr r3, [sp, #8]\n\t"                                                                                   \
    "ldr r4, [sp, #64]\n\t"                                                                                  \
    "ldr r5, [sp, #12]\n\t"                                                                                  \
    "ldr r6, [sp, #56]\n\t"                                                                                  \
    "ldr r0, [sp, #60]\n\t"                                                                                  \
    MCUD_IF_TWICE("smmlar r8, r8, r2, r8\n\t"                                                                \
                  "smmlar r9, r9, r2, r9\n\t"                                                                \
                  "smmlar r10, r10, r2, r10\n\t"                                                             \
                  "smmlar r11, r11, r2, r11\n\t"                                                             \
                  "ldr r2, [sp, #72]\n\t")                                                                   \
    "smmlar r8, r8, r2, r3\n\t"                                                                              \
    "smmlar r9, r9, r2, r3\n\t"                                                                              \
    "smmlar r10, r10, r2, r3\n\t"                                                                            \
    "smmlar r11, r11, r2, r3\n\t"                                                                            \
    "add r0, r0, #" block_bytes "\n\t"                                                                       \
    "ssat r8, #8, r8\n\t"                                                                                    \
    "ssat r9, #8, r9\n\t"                                                                                    \
    "ssat r10, #8, r10\n\t"                                                                                  \
    "ssat r11, #8, r11\n\t"                                                                                  \
    "subs r6, r6, #4\n\t"                                                                                    \
    "strb r8, [r4]\n\t"                                                                                      \
    "blt 4f\n\t"                                                                                             \
    "strb r9, [r4, r5]\n\t"                                                                                  \
    "add r4, r4, r5, lsl #1\n\t"                                                                             \
    "strb r10, [r4]\n\t"                                                                                     \
    "strb r11, [r4, r5]\n\t"                                                                                 \
    "add r4, r4, r5, lsl #1\n\t"                                                                             \
    "strd r6, r0, [sp, #56]\n\t"                                                                             \
    "str r4, [sp, #64]\n\t"                                                                                  \
    "bne 1b\n\t"                                                                                             \
    "b 5f\n"                                                                                                 \
    "4:\n\t" /* one to three outputs */                                                                      \
    "adds r6, r6, #2\n\t"                                                                                    \
    "blt 5f\n\t"                                                                                             \
    "strb r9, [r4, r5]\n\t"                                                                                  \
    "beq 5f\n\t"                                                                                             \
    "strb r10, [r4, r5, lsl #1]\n"                                                                           \
    "5:\n\t"                                                                                                 \
    "ldr r2, [sp, #36]\n\t"                                                                                  \
    "ldr r3, [sp, #40]\n\t"                                                                                  \
    "ldr r4, [sp, #52]\n\t"                                                                                  \
    "add r2, r2, #4\n\t"                                                                                     \
    "add r3, r3, #1\n\t"                                                                                     \
    "str r1, [sp, #48]\n\t"                                                                                  \
    "strd r2, r3, [sp, #36]\n\t"                                                                             \
    "subs r4, r4, #1\n\t"                                                                                    \
    "str r4, [sp, #52]\n\t"                                                                                  \
    "bne 0b\n\t"                                                                                             \
    "add sp, sp, #72\n\t" MCUD_IF_TWICE("add sp, sp, #4\n\t")                                                \
    "pop {r4-r11, pc}"

/* Column `col` of a window, and its columns times weights to the sums. */
#define MCUD_COLUMN(x, col) "ldr " x ", [r0, #16 * " col "]\n\t"
#define MCUD_COLUMNS(a, b, c, d)                                                                             \
    MCUD_COLUMN("r2", a) MCUD_COLUMN("r3", b) MCUD_COLUMN("r4", c) MCUD_COLUMN("r5", d)
#define MCUD_WEIGHTS "ldr r7, [r1], #4\n\tsxtb16 r6, r7\n\tsxtb16 r7, r7, ror #8\n\t"
#define MCUD_LAST_WEIGHTS "ldr r6, [r1], #4\n\tsxtb16 r6, r6\n\t"
#define MCUD_TAPS(a, b, c, d, w)                                                                             \
    "smlad r8, " a ", " w ", r8\n\t"                                                                         \
    "smlad r9, " b ", " w ", r9\n\t"                                                                         \
    "smlad r10, " c ", " w ", r10\n\t"                                                                       \
    "smlad r11, " d ", " w ", r11\n\t"
#define MCUD_TAPS_0(w) MCUD_TAPS("r2", "r3", "r4", "r5", w)
#define MCUD_TAPS_1(w) MCUD_TAPS("r3", "r4", "r5", "r2", w)
#define MCUD_TAPS_2(w) MCUD_TAPS("r4", "r5", "r2", "r3", w)
#define MCUD_TAPS_3(w) MCUD_TAPS("r5", "r2", "r3", "r4", w)

#define MCUD_WINDOWS(name)                                                                                   \
    MCUD_NAKED static void name(MCUD_UNUSED const int32_t *x, MCUD_UNUSED int8_t *y,                         \
                                MCUD_UNUSED const int32_t *record, MCUD_UNUSED const mcud_pair_windows *by)

MCUD_WINDOWS(mcud_windows_of_5_by_steps_of_1)
{
    __asm__(MCUD_WINDOWS_BEGIN
            MCUD_COLUMNS("0", "1", "2", "3") MCUD_WEIGHTS
            MCUD_TAPS_0("r6") MCUD_COLUMN("r2", "4") MCUD_TAPS_1("r7") MCUD_COLUMN("r3", "5") MCUD_WEIGHTS
            MCUD_TAPS_2("r6") MCUD_COLUMN("r4", "6") MCUD_TAPS_3("r7") MCUD_COLUMN("r5", "7") MCUD_LAST_WEIGHTS
            MCUD_TAPS_0("r6")
            MCUD_WINDOWS_END("64"));
}

MCUD_WINDOWS(mcud_windows_of_7_by_steps_of_1)
{
    __asm__(MCUD_WINDOWS_BEGIN
            MCUD_COLUMNS("0", "1", "2", "3") MCUD_WEIGHTS
            MCUD_TAPS_0("r6") MCUD_COLUMN("r2", "4") MCUD_TAPS_1("r7") MCUD_COLUMN("r3", "5") MCUD_WEIGHTS
            MCUD_TAPS_2("r6") MCUD_COLUMN("r4", "6") MCUD_TAPS_3("r7") MCUD_COLUMN("r5", "7") MCUD_WEIGHTS
            MCUD_TAPS_0("r6") MCUD_COLUMN("r2", "8") MCUD_TAPS_1("r7") MCUD_COLUMN("r3", "9") MCUD_LAST_WEIGHTS
            MCUD_TAPS_2("r6")
            MCUD_WINDOWS_END("64"));
}

MCUD_WINDOWS(mcud_windows_of_5_by_steps_of_2)
{
    __asm__(MCUD_WINDOWS_BEGIN
            MCUD_COLUMNS("0", "2", "4", "6") MCUD_WEIGHTS
            MCUD_TAPS_0("r6") MCUD_COLUMN("r2", "8") MCUD_TAPS_1("r7") MCUD_COLUMN("r3", "10") MCUD_WEIGHTS
            MCUD_TAPS_2("r6") MCUD_COLUMNS("1", "3", "5", "7") MCUD_TAPS_0("r7")
            MCUD_COLUMN("r2", "9") MCUD_LAST_WEIGHTS
            MCUD_TAPS_1("r6")
            MCUD_WINDOWS_END("128"));
}

MCUD_WINDOWS(mcud_windows_of_7_by_steps_of_2)
{
    __asm__(MCUD_WINDOWS_BEGIN
            MCUD_COLUMNS("0", "2", "4", "6") MCUD_WEIGHTS
            MCUD_TAPS_0("r6") MCUD_COLUMN("r2", "8") MCUD_TAPS_1("r7") MCUD_COLUMN("r3", "10") MCUD_WEIGHTS
            MCUD_TAPS_2("r6") MCUD_COLUMN("r4", "12") MCUD_TAPS_3("r7")
            MCUD_COLUMNS("1", "3", "5", "7") MCUD_WEIGHTS
            MCUD_TAPS_0("r6") MCUD_COLUMN("r2", "9") MCUD_TAPS_1("r7") MCUD_COLUMN("r3", "11") MCUD_LAST_WEIGHTS
            MCUD_TAPS_2("r6")
            MCUD_WINDOWS_END("128"));
}

static inline void mcud_pair_windows_s8(const int32_t *x, int8_t *y, const int32_t *record, int32_t cols, int32_t stride,
                                        const mcud_pair_windows *by)
{
    if (stride == 1) {
        if (cols == 5) {
            mcud_windows_of_5_by_steps_of_1(x, y, record, by);
        } else {
            mcud_windows_of_7_by_steps_of_1(x, y, record, by);
        }
    } else if (cols == 5) {
        mcud_windows_of_5_by_steps_of_2(x, y, record, by);
    } else {
        mcud_windows_of_7_by_steps_of_2(x, y, record, by);
    }
}

#endif
