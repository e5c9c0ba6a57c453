/* Computes results from the sums of positions, for cores with the DSP extension: see mcud_winograd_s8.h. */
#ifndef MCUD_TILE_RESULTS_DSP_H
#define MCUD_TILE_RESULTS_DSP_H

#include <stdint.h>

/* The place of a whole tile's results of some channels. */
typedef struct {
    int8_t *y;
    int32_t pixel;
    int32_t row;
    int32_t zero; /* 2^s times the zero point, plus half of 2^s; if results are rounded twice, the zero point */
    int32_t channels;
} mcud_whole_tile;

/* Combines r4-r9 to r4, r8, r10, r5; `last` is the factor of r9 */
#define MCUD_RESULTS_6(last)                                                                                 \
    "add r10, r5, r6\n\t"                                                                                    \
    "sub r5, r5, r6\n\t"                                                                                     \
    "add r6, r7, r8\n\t"                                                                                     \
    "sub r7, r7, r8\n\t"                                                                                     \
    "add r4, r4, r10\n\t"                                                                                    \
    "add r8, r5, r7, lsl #1\n\t"                                                                             \
    "add r10, r10, r6, lsl #2\n\t" last                                                                      \
    "add r5, r5, r7, lsl #3\n\t"                                                                             \
    "add r4, r4, r6\n\t"                                                                                     \
    "add r5, r5, r9\n\t"

/* Combines column j of positions to four rows; positions are 32 bytes apart. */
#define MCUD_RESULT_COLUMN_4(j, bias)                                                                        \
    "ldr r4, [r0, #(" j " * 32)]\n\t"                                                                        \
    "ldr r5, [r0, #(" j " * 32 + 192)]\n\t"                                                                  \
    "ldr r6, [r0, #(" j " * 32 + 384)]\n\t"                                                                  \
    "ldr r7, [r0, #(" j " * 32 + 576)]\n\t"                                                                  \
    "ldr r8, [r0, #(" j " * 32 + 768)]\n\t"                                                                  \
    "ldr r9, [r0, #(" j " * 32 + 960)]\n\t" bias MCUD_RESULTS_6("add r9, r9, r9, lsl #1\n\t")                \
    "str r4, [r0, #(" j " * 32)]\n\t"                                                                        \
    "str r8, [r0, #(" j " * 32 + 192)]\n\t"                                                                  \
    "str r10, [r0, #(" j " * 32 + 384)]\n\t"                                                                 \
    "str r5, [r0, #(" j " * 32 + 576)]\n\t"

/* Combines column j of positions to two rows. */
#define MCUD_RESULT_COLUMN_2(j, bias)                                                                        \
    "ldr r4, [r0, #(" j " * 32)]\n\t"                                                                        \
    "ldr r5, [r0, #(" j " * 32 + 192)]\n\t"                                                                  \
    "ldr r6, [r0, #(" j " * 32 + 384)]\n\t"                                                                  \
    "ldr r7, [r0, #(" j " * 32 + 576)]\n\t" bias                                                             \
    "add r4, r4, r5\n\t"                                                                                     \
    "sub r5, r5, r6\n\t"                                                                                     \
    "add r4, r4, r6\n\t"                                                                                     \
    "sub r5, r5, r7\n\t"                                                                                     \
    "str r4, [r0, #(" j " * 32)]\n\t"                                                                        \
    "str r5, [r0, #(" j " * 32 + 192)]\n\t"

#define MCUD_RESULT_COLUMNS(column)                                                                          \
    column("0", "") column("1", "add r5, r5, r11\n\t") column("2", "") column("3", "") column("4", "")        \
        column("5", "")

/* Converts 2^s times a sum to a result, without a clamp; r9 is the power of two. */
#if MCUD_FACTORS == 2
#define MCUD_RESULT(sum, shift)                                                                              \
    "asr " sum ", " sum ", #" shift "\n\t"                                                                   \
    "smmlar " sum ", " sum ", r12, " sum "\n\t"                                                              \
    "smmlar " sum ", " sum ", r9, lr\n\t"
#define MCUD_RESULT_CLAMP(sum, shift) "ssat " sum ", #8, " sum "\n\t"
#define MCUD_FACTORS_BYTES "12"
#else
#define MCUD_RESULT(sum, shift) "smmla " sum ", " sum ", r12, lr\n\t"
#define MCUD_RESULT_CLAMP(sum, shift) "ssat " sum ", #8, " sum ", asr #" shift "\n\t"
#define MCUD_FACTORS_BYTES "8"
#endif

/* Combines row i of sums to four results. r1 y, r2 pixel, r11 inverse, r12 multiplier, lr zero. */
#define MCUD_RESULT_ROW(i, bias, last, shift)                                                                \
    "ldr r4, [r0, #(" i " * 192)]\n\t"                                                                       \
    "ldr r5, [r0, #(" i " * 192 + 32)]\n\t"                                                                  \
    "ldr r6, [r0, #(" i " * 192 + 64)]\n\t"                                                                  \
    "ldr r7, [r0, #(" i " * 192 + 96)]\n\t"                                                                  \
    "ldr r8, [r0, #(" i " * 192 + 128)]\n\t"                                                                 \
    "ldr r9, [r0, #(" i " * 192 + 160)]\n\t" bias MCUD_RESULTS_6(last)                                       \
    "mul r4, r4, r11\n\t"                                                                                    \
    "mul r8, r8, r11\n\t"                                                                                    \
    "mul r10, r10, r11\n\t"                                                                                  \
    "mul r5, r5, r11\n\t"                                                                                    \
    MCUD_IF_TWICE("ldr r9, [sp, #20]\n\tldr r9, [r9, #8]\n\t")                                               \
    MCUD_RESULT("r4", shift)                                                                                 \
    MCUD_RESULT("r8", shift)                                                                                 \
    MCUD_RESULT("r10", shift)                                                                                \
    MCUD_RESULT("r5", shift)                                                                                 \
    "add r6, r1, r2, lsl #1\n\t"                                                                             \
    MCUD_RESULT_CLAMP("r4", shift)                                                                           \
    MCUD_RESULT_CLAMP("r8", shift)                                                                           \
    MCUD_RESULT_CLAMP("r10", shift)                                                                          \
    MCUD_RESULT_CLAMP("r5", shift)                                                                           \
    "strb r4, [r1]\n\t"                                                                                      \
    "strb r8, [r1, r2]\n\t"                                                                                  \
    "strb r10, [r6]\n\t"                                                                                     \
    "strb r5, [r6, r2]\n\t"

#define MCUD_NEXT_ROW "add r1, r1, r3\n\t"

/* A loop over channels. Stack: the fields of mcud_whole_tile, then factors. It is two strings, since C99 has a limit of
 * 4095 characters; in a naked function the compiler adds nothing between them. */
#define MCUD_RESULT_TILE(columns, row, inverse, rows)                                                        \
    __asm__(                                                                                                 \
        "push {r4-r11, lr}\n\t"                                                                              \
        "ldm r2, {r4-r8}\n\t"                                                                                \
        "mov r9, r1\n\t"                                                                                     \
        "push {r4-r9}\n\t"                                                                                   \
        "0:\n\t"                                                                                             \
        "ldr r11, [r1]\n\t" columns);                                                                        \
    __asm__(                                                                                                 \
        "ldr r4, [sp, #20]\n\t"                                                                              \
        "ldm sp, {r1, r2, r3, lr}\n\t"                                                                       \
        "ldr r12, [r4, #4]\n\t" row inverse rows                                                             \
        "ldr r1, [sp, #20]\n\t"                                                                              \
        "ldr r5, [sp]\n\t"                                                                                   \
        "ldr r6, [sp, #16]\n\t"                                                                              \
        "add r1, r1, #" MCUD_FACTORS_BYTES "\n\t"                                                            \
        "add r5, r5, #1\n\t"                                                                                 \
        "add r0, r0, #8\n\t"                                                                                 \
        "subs r6, r6, #1\n\t"                                                                                \
        "str r1, [sp, #20]\n\t"                                                                              \
        "str r5, [sp]\n\t"                                                                                   \
        "str r6, [sp, #16]\n\t"                                                                              \
        "bne 0b\n\t"                                                                                         \
        "add sp, sp, #24\n\t"                                                                                \
        "pop {r4-r11, pc}\n\t")

#define MCUD_INVERSE_OF_3 "movw r11, #0xaaab\n\tmovt r11, #0xaaaa\n\t"
#define MCUD_INVERSE_OF_9 "movw r11, #0x8e39\n\tmovt r11, #0x38e3\n\t"

MCUD_NAKED static void mcud_result_tile_4(MCUD_UNUSED int32_t *sums, MCUD_UNUSED const int32_t *factors,
                              MCUD_UNUSED const mcud_whole_tile *to)
{
    MCUD_RESULT_TILE(MCUD_RESULT_COLUMNS(MCUD_RESULT_COLUMN_4), "", MCUD_INVERSE_OF_9,
                     MCUD_RESULT_ROW("0", "", "add r9, r9, r9, lsl #1\n\t", "6") MCUD_NEXT_ROW
                     MCUD_RESULT_ROW("1", "", "add r9, r9, r9, lsl #1\n\t", "6") MCUD_NEXT_ROW
                     MCUD_RESULT_ROW("2", "", "add r9, r9, r9, lsl #1\n\t", "6") MCUD_NEXT_ROW
                     MCUD_RESULT_ROW("3", "", "add r9, r9, r9, lsl #1\n\t", "6"));
}

MCUD_NAKED static void mcud_result_tile_2(MCUD_UNUSED int32_t *sums, MCUD_UNUSED const int32_t *factors,
                              MCUD_UNUSED const mcud_whole_tile *to)
{
    MCUD_RESULT_TILE(MCUD_RESULT_COLUMNS(MCUD_RESULT_COLUMN_2), "", MCUD_INVERSE_OF_3,
                     MCUD_RESULT_ROW("0", "", "", "4") MCUD_NEXT_ROW MCUD_RESULT_ROW("1", "", "", "4"));
}

MCUD_NAKED static void mcud_result_tile_1(MCUD_UNUSED int32_t *sums, MCUD_UNUSED const int32_t *factors,
                              MCUD_UNUSED const mcud_whole_tile *to)
{
    MCUD_RESULT_TILE("", "ldr r3, [r4]\n\t", MCUD_INVERSE_OF_3,
                     MCUD_RESULT_ROW("0", "add r5, r5, r3\n\t", "", "3"));
}

#endif
