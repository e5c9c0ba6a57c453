/* The blocks of mcud_wide_s8.c for Arm cores with the DSP extension.
 *
 * They use all registers except the stack pointer, so the functions are assembler alone. All weights and values are
 * loaded by consecutive single loads, which on Cortex-M4 take a cycle less than loads of pairs; no load needs the
 * address that the previous one writes. With MCUD_PAIRS_LOADS a load comes after a multiplication where possible. A
 * turn is eight pairs; the first turn begins in its middle if it has fewer.
 *
 * Stack: x, y, zero point, pitch, the end of y, the end of x, where the first turn begins. */
#ifndef MCUD_WIDE_S8_DSP_H
#define MCUD_WIDE_S8_DSP_H

#include <stdint.h>

#include "mcud_products_dsp.h"

#define MCUD_WIDE(name)                                                                                      \
    MCUD_NAKED static void name(MCUD_UNUSED const int16_t *x, MCUD_UNUSED const int32_t *record,             \
                                MCUD_UNUSED int8_t *y, MCUD_UNUSED const mcud_wide_s8 *by)

/* Pushes x, y, zero point, pitch, the end of y, the end of x (`pixel` pairs apart) and where the first turn begins, of
 * `bytes` for every pair; `own` comes before them, `more` pushes further registers. */
#define MCUD_WIDE_ENTER(pixel, bytes, own, more)                                                             \
    "push {r4-r11, lr}\n\t"                                                                                  \
    "ldm r3, {r4-r7}\n\t"                                                                                    \
    "mov r9, #" bytes "\n\t"                                                                                 \
    "adr r10, 1f\n\t"                                                                                        \
    "rsb r8, r7, #0\n\t"                                                                                     \
    "and r8, r8, #7\n\t"                                                                                     \
    "mla r8, r8, r9, r10\n\t"                                                                                \
    "add r6, r6, r2\n\t"                                                                                     \
    "add r7, r0, r7, lsl #" pixel "\n\t" own                                                                 \
    "push {r0, r2, r4-r8" more "}\n\t"                                                                       \
    ".p2align 2\n\t"                                                                                         \
    "0:\n\t"
#define MCUD_WIDE_LEAVE                                                                                      \
    "add sp, sp, #28\n\t"                                                                                    \
    "pop {r4-r11, pc}\n\t"

/* A pair of values of each pixel, times the weights of each channel. */
#ifdef MCUD_PAIRS_LOADS
#define MCUD_WIDE_3X2_PAIR                                                                                   \
    "ldr.w r2, [r1], #8\n\t"                                                                                 \
    "ldr.w r11, [r0, lr]\n\t"                                                                                \
    "ldr.w r12, [r0, lr, lsl #1]\n\t"                                                                        \
    "ldr.w r10, [r0], #4\n\t"                                                                                \
    "smlad r6, r11, r2, r6\n\t"                                                                              \
    "ldr r3, [r1, #-4]\n\t"                                                                                  \
    "smlad r8, r12, r2, r8\n\t"                                                                              \
    "smlad r4, r10, r2, r4\n\t"                                                                              \
    "smlad r5, r10, r3, r5\n\t"                                                                              \
    "smlad r7, r11, r3, r7\n\t"                                                                              \
    "smlad r9, r12, r3, r9\n\t"
#define MCUD_WIDE_1X4_PAIR                                                                                   \
    "ldr.w r10, [r0], #4\n\t"                                                                                \
    "ldr.w r9, [r11, #4]\n\t"                                                                                \
    "ldr.w r8, [r11], #8\n\t"                                                                                \
    "ldr.w r2, [r1], #8\n\t"                                                                                 \
    "smlad r7, r10, r9, r7\n\t"                                                                              \
    "ldr r3, [r1, #-4]\n\t"                                                                                  \
    "smlad r6, r10, r8, r6\n\t"                                                                              \
    "smlad r4, r10, r2, r4\n\t"                                                                              \
    "smlad r5, r10, r3, r5\n\t"
#else
#define MCUD_WIDE_3X2_PAIR                                                                                   \
    "ldr.w r11, [r0, lr]\n\t"                                                                                \
    "ldr.w r12, [r0, lr, lsl #1]\n\t"                                                                        \
    "ldr.w r10, [r0], #4\n\t"                                                                                \
    "ldr.w r3, [r1, #4]\n\t"                                                                                 \
    "ldr.w r2, [r1], #8\n\t"                                                                                 \
    "smlad r5, r10, r3, r5\n\t"                                                                              \
    "smlad r4, r10, r2, r4\n\t"                                                                              \
    "smlad r6, r11, r2, r6\n\t"                                                                              \
    "smlad r7, r11, r3, r7\n\t"                                                                              \
    "smlad r8, r12, r2, r8\n\t"                                                                              \
    "smlad r9, r12, r3, r9\n\t"
#define MCUD_WIDE_1X4_PAIR                                                                                   \
    "ldr.w r10, [r0], #4\n\t"                                                                                \
    "ldr.w r9, [r11, #4]\n\t"                                                                                \
    "ldr.w r8, [r11], #8\n\t"                                                                                \
    "ldr.w r3, [r1, #4]\n\t"                                                                                 \
    "ldr.w r2, [r1], #8\n\t"                                                                                 \
    "smlad r6, r10, r8, r6\n\t"                                                                              \
    "smlad r7, r10, r9, r7\n\t"                                                                              \
    "smlad r4, r10, r2, r4\n\t"                                                                              \
    "smlad r5, r10, r3, r5\n\t"
#endif

/* 14 instructions for 16 products. */
MCUD_WIDE(mcud_wide_4x2)
{
    __asm__(
        MCUD_WIDE_ENTER("4", "56", "", "")
        "ldr r12, [sp, #24]\n\t"
        "ldr r5, [r1, #4]\n\t"
        "ldr r4, [r1], #8\n\t"
        "mov r6, r4\n\t"
        "mov r7, r5\n\t"
        "mov r8, r4\n\t"
        "mov r9, r5\n\t"
        "mov r10, r4\n\t"
        "mov r11, r5\n\t"
        "mov pc, r12\n\t"
        ".p2align 2\n\t"
        "1:\n\t"
        ".rept 8\n\t"
        MCUD_PRODUCTS_4X2(".w")
        ".endr\n\t"
        "2:\n\t"
        "ldr r12, [sp, #20]\n\t"
        "cmp r0, r12\n\t"
        "bne 1b\n\t"
        "ldr r3, [r1, #4]\n\t"
        "ldr r2, [r1], #8\n\t"
        MCUD_IF_TWICE(
        "smmlar r4, r4, r2, r4\n\t"
        "smmlar r5, r5, r3, r5\n\t"
        "smmlar r6, r6, r2, r6\n\t"
        "smmlar r7, r7, r3, r7\n\t"
        "smmlar r8, r8, r2, r8\n\t"
        "smmlar r9, r9, r3, r9\n\t"
        "smmlar r10, r10, r2, r10\n\t"
        "smmlar r11, r11, r3, r11\n\t"
        "ldr r3, [r1, #4]\n\t"
        "ldr r2, [r1], #8\n\t")
        "ldr lr, [sp, #12]\n\t"
        "ldr r12, [sp, #4]\n\t"
        "ldr r0, [sp, #8]\n\t"
        "smmlar r4, r4, r2, r0\n\t"
        "smmlar r5, r5, r3, r0\n\t"
        "smmlar r6, r6, r2, r0\n\t"
        "smmlar r7, r7, r3, r0\n\t"
        "smmlar r8, r8, r2, r0\n\t"
        "smmlar r9, r9, r3, r0\n\t"
        "smmlar r10, r10, r2, r0\n\t"
        "smmlar r11, r11, r3, r0\n\t"
        "add r2, r12, lr\n\t"
        "add r3, r12, lr, lsl #1\n\t"
        "add r0, r2, lr, lsl #1\n\t"
        "ssat r4, #8, r4\n\t"
        "ssat r5, #8, r5\n\t"
        "ssat r6, #8, r6\n\t"
        "ssat r7, #8, r7\n\t"
        "ssat r8, #8, r8\n\t"
        "ssat r9, #8, r9\n\t"
        "ssat r10, #8, r10\n\t"
        "ssat r11, #8, r11\n\t"
        "strb r4, [r12]\n\t"
        "strb r5, [r12, #1]\n\t"
        "strb r6, [r2]\n\t"
        "strb r7, [r2, #1]\n\t"
        "strb r8, [r3]\n\t"
        "strb r9, [r3, #1]\n\t"
        "strb r10, [r0]\n\t"
        "strb r11, [r0, #1]\n\t"
        "ldr r3, [sp, #16]\n\t"
        "ldr r0, [sp]\n\t"
        "adds r12, r12, #2\n\t"
        "str r12, [sp, #4]\n\t"
        "cmp r12, r3\n\t"
        "bne 0b\n\t"
        MCUD_WIDE_LEAVE);
}

/* `blocks` contiguous blocks of pixels: 11 instructions for 12 products. The stack also has channels, the first record
 * and blocks left. */
MCUD_NAKED static void mcud_wide_3x2(MCUD_UNUSED const int16_t *x, MCUD_UNUSED const int32_t *record,
                                     MCUD_UNUSED int8_t *y, MCUD_UNUSED const mcud_wide_s8 *by,
                                     MCUD_UNUSED int32_t blocks)
{
    __asm__(
        MCUD_WIDE_ENTER("2", "44",
                        "ldr lr, [r3, #16]\n\t"
                        "ldr r9, [r3, #8]\n\t"
                        "mov r10, r1\n\t"
                        "ldr r11, [sp, #36]\n\t",
                        ", r9-r11")
        "ldr r12, [sp, #24]\n\t"
        "ldr r5, [r1, #4]\n\t"
        "ldr r4, [r1], #8\n\t"
        "mov r6, r4\n\t"
        "mov r7, r5\n\t"
        "mov r8, r4\n\t"
        "mov r9, r5\n\t"
        "mov pc, r12\n\t"
        ".p2align 2\n\t"
        "1:\n\t"
        ".rept 8\n\t"
        MCUD_WIDE_3X2_PAIR
        ".endr\n\t"
        "2:\n\t"
        "ldr r12, [sp, #20]\n\t"
        "cmp r0, r12\n\t"
        "bne 1b\n\t"
        "ldr r3, [r1, #4]\n\t"
        "ldr r2, [r1], #8\n\t"
        MCUD_IF_TWICE(
        "smmlar r4, r4, r2, r4\n\t"
        "smmlar r5, r5, r3, r5\n\t"
        "smmlar r6, r6, r2, r6\n\t"
        "smmlar r7, r7, r3, r7\n\t"
        "smmlar r8, r8, r2, r8\n\t"
        "smmlar r9, r9, r3, r9\n\t"
        "ldr r3, [r1, #4]\n\t"
        "ldr r2, [r1], #8\n\t")
        "ldr r11, [sp, #12]\n\t"
        "ldr r12, [sp, #4]\n\t"
        "ldr r10, [sp, #8]\n\t"
        "smmlar r4, r4, r2, r10\n\t"
        "smmlar r5, r5, r3, r10\n\t"
        "smmlar r6, r6, r2, r10\n\t"
        "smmlar r7, r7, r3, r10\n\t"
        "smmlar r8, r8, r2, r10\n\t"
        "smmlar r9, r9, r3, r10\n\t"
        "add r2, r12, r11\n\t"
        "add r3, r12, r11, lsl #1\n\t"
        "ssat r4, #8, r4\n\t"
        "ssat r5, #8, r5\n\t"
        "ssat r6, #8, r6\n\t"
        "ssat r7, #8, r7\n\t"
        "ssat r8, #8, r8\n\t"
        "ssat r9, #8, r9\n\t"
        "strb r4, [r12]\n\t"
        "strb r5, [r12, #1]\n\t"
        "strb r6, [r2]\n\t"
        "strb r7, [r2, #1]\n\t"
        "strb r8, [r3]\n\t"
        "strb r9, [r3, #1]\n\t"
        "ldr r3, [sp, #16]\n\t"
        "ldr r0, [sp]\n\t"
        "adds r12, r12, #2\n\t"
        "str r12, [sp, #4]\n\t"
        "cmp r12, r3\n\t"
        "bne 0b\n\t"
        "ldr r2, [sp, #36]\n\t"
        "ldr r11, [sp, #12]\n\t"
        "ldr r12, [sp, #20]\n\t"
        "ldr r9, [sp, #28]\n\t"
        "ldr r1, [sp, #32]\n\t"
        "subs r2, r2, #1\n\t"
        "beq 3f\n\t"
        "add r10, lr, lr, lsl #1\n\t"
        "add r11, r11, r11, lsl #1\n\t"
        "add r0, r0, r10\n\t"
        "add r12, r12, r10\n\t"
        "add r3, r3, r11\n\t"
        "sub r11, r3, r9\n\t"
        "str r2, [sp, #36]\n\t"
        "str r0, [sp]\n\t"
        "str r12, [sp, #20]\n\t"
        "str r3, [sp, #16]\n\t"
        "str r11, [sp, #4]\n\t"
        "b 0b\n\t"
        "3:\n\t"
        "add sp, sp, #12\n\t"
        MCUD_WIDE_LEAVE);
}

/* Two records at a time: 9 instructions for 8 products. */
MCUD_WIDE(mcud_wide_1x4)
{
    __asm__(
        MCUD_WIDE_ENTER("2", "36", "ldr r5, [r3, #16]\n\tadd r11, r1, r5\n\tmov r12, r7\n\tmov lr, r8\n\t", "")
        "ldr r5, [r1, #4]\n\t"
        "ldr r4, [r1], #8\n\t"
        "ldr r7, [r11, #4]\n\t"
        "ldr r6, [r11], #8\n\t"
        "mov pc, lr\n\t"
        ".p2align 2\n\t"
        "1:\n\t"
        ".rept 8\n\t"
        MCUD_WIDE_1X4_PAIR
        ".endr\n\t"
        "2:\n\t"
        "cmp r0, r12\n\t"
        "bne 1b\n\t"
        "ldr r3, [r1, #4]\n\t"
        "ldr r2, [r1]\n\t"
        "ldr r9, [r11, #4]\n\t"
        "ldr r8, [r11], #8\n\t"
        MCUD_IF_TWICE(
        "smmlar r4, r4, r2, r4\n\t"
        "smmlar r5, r5, r3, r5\n\t"
        "smmlar r6, r6, r8, r6\n\t"
        "smmlar r7, r7, r9, r7\n\t"
        "ldr r3, [r1, #12]\n\t"
        "ldr r2, [r1, #8]\n\t"
        "ldr r9, [r11, #4]\n\t"
        "ldr r8, [r11], #8\n\t")
        "ldr r10, [sp, #8]\n\t"
        "ldr r0, [sp, #4]\n\t"
        "smmlar r4, r4, r2, r10\n\t"
        "smmlar r5, r5, r3, r10\n\t"
        "smmlar r6, r6, r8, r10\n\t"
        "smmlar r7, r7, r9, r10\n\t"
        "mov r1, r11\n\t"
        "ssat r4, #8, r4\n\t"
        "ssat r5, #8, r5\n\t"
        "ssat r6, #8, r6\n\t"
        "ssat r7, #8, r7\n\t"
        "strb r4, [r0], #1\n\t"
        "strb r5, [r0], #1\n\t"
        "strb r6, [r0], #1\n\t"
        "strb r7, [r0], #1\n\t"
        "str r0, [sp, #4]\n\t"
        "mov r2, r0\n\t"
        "ldr r10, [sp, #12]\n\t"
        "ldr r3, [sp, #16]\n\t"
        "ldr r0, [sp]\n\t"
        "add r11, r1, r10\n\t"
        "cmp r2, r3\n\t"
        "bne 0b\n\t"
        MCUD_WIDE_LEAVE);
}

/* `fours` groups of four values of four pixels, at least one: 22 instructions for 16 values. */
MCUD_NAKED void mcud_wide_expand_fours(MCUD_UNUSED int16_t *x, MCUD_UNUSED const int8_t *const pixels[4],
                                       MCUD_UNUSED int32_t fours)
{
    __asm__(
        "push {r4-r10, lr}\n\t"
        "mov r12, r2\n\t"
        "ldm r1, {r1-r4}\n\t"
        "add r12, r1, r12, lsl #2\n\t"
        "b 0f\n\t"
        ".p2align 2\n\t"
        "0:\n\t"
        "ldr r5, [r1], #4\n\t"
        "ldr r6, [r2], #4\n\t"
        "ldr r7, [r3], #4\n\t"
        "ldr r8, [r4], #4\n\t"
        "sxtb16 r9, r5\n\t"
        "sxtb16 r10, r6\n\t"
        "sxtb16 lr, r7\n\t"
        "cmp r1, r12\n\t"
        "str r9, [r0], #32\n\t"
        "sxtb16 r9, r8\n\t"
        "str r10, [r0, #-28]\n\t"
        "str lr, [r0, #-24]\n\t"
        "str r9, [r0, #-20]\n\t"
        "sxtb16 r5, r5, ror #8\n\t"
        "sxtb16 r6, r6, ror #8\n\t"
        "sxtb16 r7, r7, ror #8\n\t"
        "sxtb16 r8, r8, ror #8\n\t"
        "str r5, [r0, #-16]\n\t"
        "str r6, [r0, #-12]\n\t"
        "str r7, [r0, #-8]\n\t"
        "str r8, [r0, #-4]\n\t"
        "bne 0b\n\t"
        "pop {r4-r10, pc}\n\t");
}

#endif
