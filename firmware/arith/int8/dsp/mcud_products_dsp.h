/* Products of pairs of values and weights for Arm cores with the DSP extension, as assembler. */
#ifndef MCUD_PRODUCTS_DSP_H
#define MCUD_PRODUCTS_DSP_H

#include "mcud_config.h"

/* Two values of each of four pixels, at r0, times the weights of two channels, at r1, added to r4-r11: 14 instructions
 * for 16 products. On Cortex-M4 consecutive single loads take a cycle less than loads of pairs. With MCUD_PAIRS_LOADS a
 * load comes after a multiplication where possible. `w` is the width of the first loads, ".w" or "". */
#ifdef MCUD_PAIRS_LOADS
#define MCUD_PRODUCTS_4X2(w)                                                                                 \
    "ldr" w " r3, [r1, #4]\n\t"                                                                              \
    "ldr" w " r2, [r1], #8\n\t"                                                                              \
    "ldr" w " lr, [r0, #4]\n\t"                                                                              \
    "ldr" w " r12, [r0], #16\n\t"                                                                            \
    "smlad r6, lr, r2, r6\n\t"                                                                               \
    "smlad r7, lr, r3, r7\n\t"                                                                               \
    "ldr lr, [r0, #-4]\n\t"                                                                                  \
    "smlad r4, r12, r2, r4\n\t"                                                                              \
    "smlad r5, r12, r3, r5\n\t"                                                                              \
    "ldr r12, [r0, #-8]\n\t"                                                                                 \
    "smlad r10, lr, r2, r10\n\t"                                                                             \
    "smlad r11, lr, r3, r11\n\t"                                                                             \
    "smlad r8, r12, r2, r8\n\t"                                                                              \
    "smlad r9, r12, r3, r9\n\t"
#else
#define MCUD_PRODUCTS_4X2(w)                                                                                 \
    "ldr" w " r3, [r1, #4]\n\t"                                                                              \
    "ldr" w " r2, [r1], #8\n\t"                                                                              \
    "ldr" w " lr, [r0, #4]\n\t"                                                                              \
    "ldr" w " r12, [r0], #16\n\t"                                                                            \
    "smlad r6, lr, r2, r6\n\t"                                                                               \
    "smlad r7, lr, r3, r7\n\t"                                                                               \
    "smlad r4, r12, r2, r4\n\t"                                                                              \
    "smlad r5, r12, r3, r5\n\t"                                                                              \
    "ldr r12, [r0, #-8]\n\t"                                                                                 \
    "ldr lr, [r0, #-4]\n\t"                                                                                  \
    "smlad r8, r12, r2, r8\n\t"                                                                              \
    "smlad r9, r12, r3, r9\n\t"                                                                              \
    "smlad r10, lr, r2, r10\n\t"                                                                             \
    "smlad r11, lr, r3, r11\n\t"
#endif

#endif
