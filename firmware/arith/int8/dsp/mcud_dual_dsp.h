/* mcud_dual_s8.h for Arm cores with the DSP extension.
 *
 * It uses all registers except the stack pointer, so the function is assembler alone. Two consecutive single loads load
 * weights, since on Cortex-M4 they take a cycle less than a load of a pair; no load needs the address that the previous
 * one writes. A turn is four groups; the first turn begins in its middle if it has fewer.
 *
 * With MCUD_PAIRS_LOADS the loads are separate, each after a multiplication. */
#ifndef MCUD_DUAL_DSP_H
#define MCUD_DUAL_DSP_H

#include <stdint.h>

#include "mcud_config.h"

#ifdef MCUD_PAIRS_LOADS
#define MCUD_DUAL_FIRST(load)                                                                                \
    "sxtb16 r2, r3\n\t" load                                                                                 \
    "sxtb16 r3, r3, ror #8\n\t"
#define MCUD_DUAL_LAST(x, s0, s1, load0, load1)                                                              \
    "smlad " s0 ", " x ", r12, " s0 "\n\t" load0 "smlad " s1 ", " x ", lr, " s1 "\n\t" load1
#else
#define MCUD_DUAL_FIRST(load)                                                                                \
    load "sxtb16 r2, r3\n\t"                                                                                 \
         "sxtb16 r3, r3, ror #8\n\t"
#define MCUD_DUAL_LAST(x, s0, s1, load0, load1)                                                              \
    "smlad " s0 ", " x ", r12, " s0 "\n\t"                                                                   \
    "smlad " s1 ", " x ", lr, " s1 "\n\t" load0 load1
#endif

/* Two words of weights, times the values in `x`: adds the sums A + 256 B to t0 and t1, the sums A to s0 and s1
 * (mcud_dual_s8.h). `load0` and `load1` load the next two words. */
#define MCUD_DUAL_MULTIPLY(x, t0, t1, s0, s1, load0, load1)                                                  \
    "smlad " t0 ", " x ", r12, " t0 "\n\t"                                                                   \
    "smlad " t1 ", " x ", lr, " t1 "\n\t"                                                                    \
    "sxtb16 r12, r12\n\t"                                                                                    \
    "sxtb16 lr, lr\n\t"                                                                                      \
    MCUD_DUAL_LAST(x, s0, s1, load0, load1)
#define MCUD_DUAL_LOAD(to, at) "ldr " to ", [r1, #" at "]\n\t"

/* Results of two channels from `even` and `odd`; `place` is the offset of their factors. */
#define MCUD_DUAL_FINISH(even, odd, at, next, place)                                                         \
    "ldr r2, [r1, #" place "]\n\t"                                                                           \
    "ldr r3, [r1, #" place " + 4]\n\t"                                                                       \
    MCUD_IF_TWICE("smmlar " even ", " even ", r2, " even "\n\t"                                              \
                  "smmlar " odd ", " odd ", r3, " odd "\n\t"                                                 \
                  "ldr r2, [r1, #" place " + 32]\n\t"                                                        \
                  "ldr r3, [r1, #" place " + 36]\n\t")                                                       \
    "smmlar " even ", " even ", r2, r0\n\t"                                                                  \
    "smmlar " odd ", " odd ", r3, r0\n\t"                                                                    \
    "ssat " even ", #8, " even "\n\t"                                                                        \
    "ssat " odd ", #8, " odd "\n\t"                                                                          \
    "strb " even ", [r12, #" at "]\n\t"                                                                      \
    "strb " odd ", [r12, #" next "]\n\t"

/* 35 instructions for 32 products. Stack: x, y, zero point, end of x, end of y, where the first turn begins. */
MCUD_NAKED static const int32_t *mcud_multiply_dual(MCUD_UNUSED const int8_t *x, MCUD_UNUSED const int32_t *record,
                                                    MCUD_UNUSED int8_t *y, MCUD_UNUSED const mcud_dual_s8 *by)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "ldm r3, {r4-r6}\n\t"
        "sub r7, r5, r0\n\t"
        "rsb r7, r7, #0\n\t"
        "ubfx r7, r7, #2, #2\n\t" /* groups that the first turn lacks, of 140 bytes */
        "mov r8, #140\n\t"
        "adr r9, 1f\n\t"
        "mla r7, r7, r8, r9\n\t"
        "push {r0, r2, r4-r7}\n\t"
        "0:\n\t"
        "ldr r12, [sp, #20]\n\t"
        "ldm r1!, {r4-r11}\n\t"
        "mov pc, r12\n\t"
        ".p2align 2\n\t"
        "1:\n\t"
        ".rept 4\n\t"
        "ldr.w r3, [r0], #4\n\t"
        "ldr.w lr, [r1, #4]\n\t"
        MCUD_DUAL_FIRST("ldr.w r12, [r1], #32\n\t")
        MCUD_DUAL_MULTIPLY("r2", "r4", "r5", "r8", "r9", MCUD_DUAL_LOAD("r12", "-24"), MCUD_DUAL_LOAD("lr", "-20"))
        MCUD_DUAL_MULTIPLY("r2", "r6", "r7", "r10", "r11", MCUD_DUAL_LOAD("r12", "-16"), MCUD_DUAL_LOAD("lr", "-12"))
        MCUD_DUAL_MULTIPLY("r3", "r4", "r5", "r8", "r9", MCUD_DUAL_LOAD("r12", "-8"), MCUD_DUAL_LOAD("lr", "-4"))
        MCUD_DUAL_MULTIPLY("r3", "r6", "r7", "r10", "r11", "", "")
        ".endr\n\t"
        "ldr r12, [sp, #12]\n\t"
        "cmp r0, r12\n\t"
        "bne 1b\n\t"
        "ldr r0, [sp, #8]\n\t"
        "ldr r12, [sp, #4]\n\t"
        "sub r4, r4, r8\n\t"
        "sub r5, r5, r9\n\t"
        "sub r6, r6, r10\n\t"
        "sub r7, r7, r11\n\t"
        "asr r4, r4, #8\n\t"
        "asr r5, r5, #8\n\t"
        "asr r6, r6, #8\n\t"
        "asr r7, r7, #8\n\t"
        MCUD_DUAL_FINISH("r8", "r4", "0", "1", "0")
        MCUD_DUAL_FINISH("r9", "r5", "2", "3", "8")
        MCUD_DUAL_FINISH("r10", "r6", "4", "5", "16")
        MCUD_DUAL_FINISH("r11", "r7", "6", "7", "24")
        "ldr r0, [sp]\n\t"
        "ldr r3, [sp, #16]\n\t"
        "add r1, r1, #32\n\t" MCUD_IF_TWICE("add r1, r1, #32\n\t")
        "add r12, r12, #8\n\t"
        "str r12, [sp, #4]\n\t"
        "cmp r12, r3\n\t"
        "bne 0b\n\t"
        "mov r0, r1\n\t"
        "add sp, sp, #24\n\t"
        "pop {r4-r11, pc}\n\t");
}

#endif
