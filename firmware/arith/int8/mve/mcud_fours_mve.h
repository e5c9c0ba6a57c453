/* Pixels by four channels by the M-profile Vector Extension: a part of mcud_pixel_blocks_s8.h.
 *
 * Loads stand between multiplications, which then hide them; sums are in r0, r2 and so on, the only registers that a
 * multiplication adds to. */
#ifndef MCUD_FOURS_MVE_H
#define MCUD_FOURS_MVE_H

#include <stddef.h>
#include <stdint.h>

#include "mcud_compiler.h"

/* Blocks of 4 or 2 pixels of more than 32 values, in the order that assembler assumes. */
typedef struct {
    const int8_t *x[4];
    int32_t vectors; /* of 4 pixels less 1, of 2 pixels less 2 */
    int32_t pitch;
    int8_t *end; /* of the first pixel's results */
    int8_t *y;
    int32_t zero_point;
    const int32_t *records;
    int32_t blocks;
    int32_t next_x;
    int32_t next_end; /* from `end` to that of the next block */
    int32_t next_y;   /* from `end` to `y` of the next block */
    const int32_t *offsets;
} mcud_deep_fours;

/* Blocks of 3 pixels of at most 16 values, or of 2 of at most 32, in the order that assembler assumes. */
typedef struct {
    const int32_t *records;
    const int8_t *x;
    int8_t *y;
    int32_t x_step; /* to the second pixel */
    int32_t y_step;
    int32_t x_third; /* from the second pixel to the third */
    int32_t y_third;
    int32_t next_x; /* from the last pixel to the next block */
    int32_t fours;
    int32_t next_y; /* from the first pixel's end */
    int32_t blocks;
    int32_t depth; /* of 2 pixels, less 16 */
    int32_t zero_point;
    const int32_t *offsets;
} mcud_shallow_fours;

/* Single pixels, in the order that assembler assumes. */
typedef struct {
    const int32_t *records;
    int32_t weights; /* bytes of two channels */
    int32_t depth;
    int32_t channels; /* a multiple of 4 */
    int32_t zero_point;
} mcud_single_fours;

/* A kernel whose pixels have offsets of their sums defines MCUD_PIXEL_OFFSETS. */
#if defined(MCUD_PIXEL_OFFSETS)
#define MCUD_IF_OFFSETS(text) text
#else
#define MCUD_IF_OFFSETS(text)
#endif

/* Four lanes of sums, with their biases in q0, multipliers in q1 and powers of two in `power`. */
#if MCUD_FACTORS == 2
#define MCUD_SCALE_FIRST "vqrdmulh.s32 "
#define MCUD_SCALE_AGAIN(q, power) "vrmulh.s32 " q ", " q ", " power "\n\t"
#else
#define MCUD_SCALE_FIRST "vrmulh.s32 "
#define MCUD_SCALE_AGAIN(q, power)
#endif
#define MCUD_SCALE_FOUR(q)                                                                                   \
    "vadd.i32 " q ", " q ", q0\n\t" MCUD_SCALE_FIRST q ", " q ", q1\n\t"
#define MCUD_STORE_FOUR(q, y, zero_point)                                                                    \
    "vqmovnb.s32 " q ", " q "\n\t"                                                                           \
    "vqadd.s16 " q ", " q ", " zero_point "\n\t"                                                             \
    "vqmovnb.s16 " q ", " q "\n\t"                                                                           \
    "vstrb.32 " q ", " y "\n\t"
/* Two pixels' lanes together in half words. */
#define MCUD_STORE_TWO_FOURS(a, b, y, z, zero_point)                                                         \
    "vqmovnb.s32 " a ", " a "\n\t"                                                                           \
    "vqmovnt.s32 " a ", " b "\n\t"                                                                           \
    "vqadd.s16 " a ", " a ", " zero_point "\n\t"                                                             \
    "vqmovnb.s16 " a ", " a "\n\t"                                                                           \
    "vstrb.32 " a ", " y "\n\t"                                                                              \
    "vshr.u32 " b ", " a ", #16\n\t"                                                                         \
    "vstrb.32 " b ", " z "\n\t"

/* 16 values of pixels by two channels' weights, q0 and q1. The first pixel's values are in q2; `then` loads what the
 * next 16 values begin with. */
#define MCUD_BLOCK_4(multiply, then)                                                                         \
    multiply " r0, q2, q0\n\tvldrb.8 q7, [r5], #16\n\t"                                                      \
    multiply " r2, q2, q1\n\tvldrb.8 q2, [r7], #16\n\t"                                                      \
    multiply " r4, q7, q0\n\t"                                                                               \
    multiply " r6, q7, q1\n\tvldrb.8 q7, [r9], #16\n\t"                                                      \
    multiply " r8, q2, q0\n\t"                                                                               \
    multiply " r10, q2, q1\n\t" then                                                                         \
    multiply " r12, q7, q0\n\tvldrb.8 q0, [r1], #16\n\t"                                                     \
    multiply " lr, q7, q1\n\tvldrb.8 q1, [r1], #16\n\t"
#define MCUD_BLOCK_2(multiply, then)                                                                         \
    multiply " r0, q2, q0\n\tvldrb.8 q7, [r5], #16\n\t"                                                      \
    multiply " r2, q2, q1\n\t" then                                                                          \
    multiply " r4, q7, q0\n\tvldrb.8 q0, [r1], #16\n\t"                                                      \
    multiply " r6, q7, q1\n\tvldrb.8 q1, [r1], #16\n\t"
#define MCUD_THEN "vldrb.8 q2, [r3], #16\n\t"

/* Two channels of pixels to lanes `a` and `b`; at their end, q0 and q1 are the next 32 bytes of the record. */
#define MCUD_PAIR_OF_4(a, b)                                                                                 \
    "ldrd r3, r5, [r11]\n\t"                                                                                 \
    "ldrd r7, r9, [r11, #8]\n\t"                                                                             \
    "ldr r11, [r11, #16]\n\t" MCUD_THEN MCUD_BLOCK_4("vmladav.s8", MCUD_THEN)                                 \
    "lsrs r11, r11, #1\n\t"                                                                                  \
    "bcc 1" a "f\n"                                                                                          \
    "2" a ":\n\t" MCUD_BLOCK_4("vmladava.s8", MCUD_THEN)                                                     \
    "1" a ":\n\t" MCUD_BLOCK_4("vmladava.s8", MCUD_THEN)                                                     \
    "subs r11, r11, #1\n\t"                                                                                  \
    "bne 2" a "b\n\t"                                                                                        \
    "ldr r11, [sp]\n\t" MCUD_BLOCK_4("vmladava.s8", "")                                                      \
    "vmov q3[" b "], q3[" a "], r0, r2\n\t"                                                                  \
    "vmov q4[" b "], q4[" a "], r4, r6\n\t"                                                                  \
    "vmov q5[" b "], q5[" a "], r8, r10\n\t"                                                                 \
    "vmov q6[" b "], q6[" a "], r12, lr\n\t"
#define MCUD_PAIR_OF_2(a, b)                                                                                 \
    "ldrd r3, r5, [r11]\n\t"                                                                                 \
    "ldr r11, [r11, #16]\n\t" MCUD_THEN MCUD_BLOCK_2("vmladav.s8", MCUD_THEN)                                 \
    "wls lr, r11, 3" a "f\n"                                                                                 \
    "2" a ":\n\t" MCUD_BLOCK_2("vmladava.s8", MCUD_THEN)                                                     \
    "le lr, 2" a "b\n"                                                                                       \
    "3" a ":\n\t"                                                                                            \
    "ldr r11, [sp]\n\t" MCUD_BLOCK_2("vmladava.s8", "")                                                      \
    "vmov q3[" b "], q3[" a "], r0, r2\n\t"                                                                  \
    "vmov q4[" b "], q4[" a "], r4, r6\n\t"
#define MCUD_PAIRS_OF_2 MCUD_PAIR_OF_2("0", "2") MCUD_PAIR_OF_2("1", "3")
#define MCUD_PAIRS_OF_4 MCUD_PAIR_OF_4("0", "2") MCUD_PAIR_OF_4("1", "3")

/* Sums to results of blocks. r2 pitch, r3 end, r4 y, r5 zero point. */
#define MCUD_ADD_OFFSET(q, offset) "vadd.i32 " q ", " q ", " offset "\n\t"
#define MCUD_RESULTS_4                                                                                       \
    MCUD_IF_OFFSETS("ldr r6, [r11, #56]\n\tldm r6, {r7-r10}\n\t" MCUD_ADD_OFFSET("q3", "r7")                \
                    MCUD_ADD_OFFSET("q4", "r8") MCUD_ADD_OFFSET("q5", "r9") MCUD_ADD_OFFSET("q6", "r10"))    \
    MCUD_SCALE_FOUR("q3") MCUD_SCALE_FOUR("q4") MCUD_SCALE_FOUR("q5") MCUD_SCALE_FOUR("q6")                  \
    MCUD_SCALE_AGAIN("q3", "q2") MCUD_SCALE_AGAIN("q4", "q2")                                                \
    MCUD_SCALE_AGAIN("q5", "q2") MCUD_SCALE_AGAIN("q6", "q2")                                                \
    "add r6, r4, r2\n\t" MCUD_STORE_TWO_FOURS("q3", "q4", "[r4]", "[r6]", "r5")                              \
    "add r7, r6, r2\n\t"                                                                                     \
    "add r6, r7, r2\n\t" MCUD_STORE_TWO_FOURS("q5", "q6", "[r7]", "[r6]", "r5")
#define MCUD_RESULTS_2                                                                                       \
    MCUD_IF_OFFSETS("ldr r6, [r11, #56]\n\tldrd r7, r8, [r6]\n\t" MCUD_ADD_OFFSET("q3", "r7")               \
                    MCUD_ADD_OFFSET("q4", "r8"))                                                             \
    MCUD_SCALE_FOUR("q3") MCUD_SCALE_FOUR("q4") MCUD_SCALE_AGAIN("q3", "q2") MCUD_SCALE_AGAIN("q4", "q2")    \
    "add r6, r4, r2\n\t" MCUD_STORE_TWO_FOURS("q3", "q4", "[r4]", "[r6]", "r5")

/* r1 records; mcud_deep_fours is at r11, or at [sp] while r11 counts. */
#define MCUD_DEEP_FOURS(n)                                                                                   \
    __asm__(                                                                                                 \
        "push {r4-r11, lr}\n\t"                                                                              \
        "vpush {d8-d15}\n\t"                                                                                 \
        "push {r0}\n\t"                                                                                       \
        "mov r11, r0\n"                                                                                      \
        "8:\n\t"                                                                                             \
        "ldr r1, [r11, #36]\n"                                                                               \
        "9:\n\t"                                                                                             \
        "vldrb.8 q0, [r1], #16\n\t"                                                                          \
        "vldrb.8 q1, [r1], #16\n\t" MCUD_PAIRS_OF_##n                                                       \
        MCUD_IF_TWICE("vldrw.u32 q2, [r1], #16\n\t")                                                         \
        "ldrd r2, r3, [r11, #20]\n\t"                                                                         \
        "ldrd r4, r5, [r11, #28]\n\t" MCUD_RESULTS_##n                                                        \
        "adds r4, r4, #4\n\t"                                                                                \
        "str r4, [r11, #28]\n\t"                                                                              \
        "cmp r4, r3\n\t"                                                                                     \
        "bne 9b\n\t"                                                                                         \
        "ldrd r9, r10, [r11, #40]\n\t"                                                                        \
        "ldm r11, {r5-r8}\n\t"                                                                                \
        "add r5, r5, r10\n\t"                                                                                \
        "add r6, r6, r10\n\t"                                                                                \
        "add r7, r7, r10\n\t"                                                                                \
        "add r8, r8, r10\n\t"                                                                                \
        "stm r11, {r5-r8}\n\t"                                                                                \
        "ldrd r5, r6, [r11, #48]\n\t"                                                                         \
        "add r5, r5, r3\n\t"                                                                                 \
        "add r6, r6, r3\n\t"                                                                                 \
        "strd r5, r6, [r11, #24]\n\t"                                                                         \
        MCUD_IF_OFFSETS("ldr r5, [r11, #56]\n\tadd r5, r5, #4 * " #n "\n\tstr r5, [r11, #56]\n\t")             \
        "subs r9, r9, #1\n\t"                                                                                \
        "str r9, [r11, #40]\n\t"                                                                              \
        "bne 8b\n\t"                                                                                         \
        "add sp, sp, #4\n\t"                                                                                \
        "vpop {d8-d15}\n\t"                                                                                  \
        "pop {r4-r11, pc}\n\t")

/* GCC and Clang take a text of more than the 4,095 characters that C99 requires. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
MCUD_NAKED static void mcud_deep_fours_4(MCUD_UNUSED mcud_deep_fours *by)
{
    MCUD_DEEP_FOURS(4);
}
#pragma GCC diagnostic pop

MCUD_NAKED static void mcud_deep_fours_2(MCUD_UNUSED mcud_deep_fours *by)
{
    MCUD_DEEP_FOURS(2);
}

/* r1 and r5 the weights of pairs of channels, r3 and r10 x, r8 bytes of a pair, r9 depth, r7 y, r11 its end, r12 zero
 * point. Nothing after the pixel is read. */
MCUD_NAKED static void mcud_single_pixel(MCUD_UNUSED const int8_t *x, MCUD_UNUSED int8_t *y,
                                         MCUD_UNUSED const mcud_single_fours *by, MCUD_UNUSED int32_t offset)
{
    __asm__(
        "push {r3-r11, lr}\n\t"
        "vpush {d8-d9}\n\t"
        "mov r10, r0\n\t"
        "mov r7, r1\n\t"
        "ldm r2, {r1, r8, r9, r11, r12}\n\t"
        "add r11, r11, r7\n"
        "1:\n\t"
        "add r5, r1, r8\n\t"
        "add r3, r5, r8\n\t"
        "ldrd r0, r4, [r3]\n\t"
        "ldrd r2, r6, [r3, #8]\n\t"
        "mov r3, r10\n\t"
        "dlstp.8 lr, r9\n"
        "2:\n\t"
        "vldrb.8 q2, [r3], #16\n\t"
        "vldrb.8 q0, [r1], #16\n\t"
        "vmladava.s8 r0, q2, q0\n\t"
        "vldrb.8 q1, [r1], #16\n\t"
        "vmladava.s8 r2, q2, q1\n\t"
        "vldrb.8 q3, [r5], #16\n\t"
        "vmladava.s8 r4, q2, q3\n\t"
        "vldrb.8 q4, [r5], #16\n\t"
        "vmladava.s8 r6, q2, q4\n\t"
        "letp lr, 2b\n\t"
        "vmov q3[2], q3[0], r0, r2\n\t"
        "vldrw.u32 q1, [r5, #16]!\n\t"
        "vmov q3[3], q3[1], r4, r6\n\t"
        MCUD_IF_OFFSETS("ldr r3, [sp, #16]\n\t" MCUD_ADD_OFFSET("q3", "r3"))
        MCUD_SCALE_FIRST "q3, q3, q1\n\t"
        MCUD_IF_TWICE("vldrw.u32 q2, [r5, #16]!\n\t") MCUD_SCALE_AGAIN("q3", "q2")
        "add r1, r5, #16\n\t"
        MCUD_STORE_FOUR("q3", "[r7], #4", "r12")
        "cmp r7, r11\n\t"
        "bne 1b\n\t"
        "vpop {d8-d9}\n\t"
        "pop {r3-r11, pc}\n\t");
}

/* `count` pixels one by one, by all whole records */
static inline void mcud_single_pixels(const mcud_vector_channels *by, const int8_t *x, int32_t step, int32_t count,
                                      int8_t *y, const int32_t *offsets)
{
    const mcud_single_fours fours = {
        .records = by->records,
        .weights = (by->depth + 15) / 16 * 32,
        .depth = by->depth,
        .channels = by->channels & ~3,
        .zero_point = by->finish.zero_point,
    };
    for (int32_t p = 0; p < count; p++) {
        mcud_single_pixel(x + p * step, y + p * by->pitch, &fours, offsets != NULL ? offsets[p] : 0);
    }
}

/* Blocks of pixels that stay in registers for all channels: r11 mcud_shallow_fours, r12 zero point, r1 records, r3, r5
 * and r7 y. The predicate is that of a pixel's last values. */
#define MCUD_SHALLOW_FOURS(n, load, four)                                                                       \
    __asm__(                                                                                                 \
        "push {r4-r11, lr}\n\t"                                                                              \
        "vpush {d8-d15}\n\t"                                                                                 \
        "mov r11, r0\n\t"                                                                                    \
        "ldrd r0, r12, [r11, #44]\n\t"                                                                       \
        "vctp.8 r0\n\t"                                                                                      \
        MCUD_IF_OFFSETS("ldr r9, [r11, #52]\n")                                                              \
        "8:\n\t"                                                                                             \
        "ldm r11, {r1-r8, lr}\n\t"                                                                           \
        "add r4, r4, r2\n\t"                                                                                 \
        "add r5, r5, r3\n\t" load                                                                            \
        "str r8, [r11, #4]\n\t"                                                                              \
        "dls lr, lr\n"                                                                                       \
        "1:\n\t"                                                                                             \
        "vldrb.8 q0, [r1], #16\n\t" four                                                                     \
        "le lr, 1b\n\t"                                                                                      \
        "ldrd r0, r2, [r11, #36]\n\t"                                                                        \
        "add r3, r3, r0\n\t"                                                                                 \
        "str r3, [r11, #8]\n\t"                                                                              \
        MCUD_IF_OFFSETS("add r9, r9, #4 * " #n "\n\t")                                                      \
        "subs r2, r2, #1\n\t"                                                                                \
        "str r2, [r11, #40]\n\t"                                                                             \
        "bne 8b\n\t" MCUD_IF_OFFSETS("str r9, [r11, #52]\n\t")                                              \
        "vpop {d8-d15}\n\t"                                                                                  \
        "pop {r4-r11, pc}\n\t")

/* The pixels at r2 and r4, and at r6 after that; r8 to the next block. */
#define MCUD_LOAD_3_PIXELS                                                                                   \
    "add r6, r6, r4\n\t"                                                                                    \
    "vpsttt\n\t"                                                                                            \
    "vldrbt.8 q5, [r2]\n\t"                                                                                 \
    "vldrbt.8 q6, [r4]\n\t"                                                                                 \
    "vldrbt.8 q7, [r6]\n\t"                                                                                 \
    "add r7, r7, r5\n\t"                                                                                    \
    "add r8, r8, r6\n\t"
#define MCUD_LOAD_2_PIXELS                                                                                   \
    "vldrb.8 q4, [r2]\n\t"                                                                                  \
    "vldrb.8 q6, [r4]\n\t"                                                                                  \
    "vpstt\n\t"                                                                                             \
    "vldrbt.8 q5, [r2, #16]\n\t"                                                                            \
    "vldrbt.8 q7, [r4, #16]\n\t"                                                                            \
    "add r8, r8, r4\n\t"

/* Two channels of three pixels, q5 to q7, to two lanes of each; q0 are weights, in the end those that follow. */
#define MCUD_PAIR_OF_3_SHALLOW(a, b)                                                                         \
    "vmladav.s8 r0, q5, q0\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t"                                                                              \
    "vmladav.s8 r4, q6, q0\n\t"                                                                              \
    "vmladav.s8 r8, q7, q0\n\t"                                                                              \
    "vldrb.8 q0, [r1], #16\n\t"                                                                              \
    "vmladav.s8 r2, q5, q1\n\t"                                                                              \
    "vmladav.s8 r6, q6, q1\n\t"                                                                              \
    "vmov q2[" b "], q2[" a "], r0, r2\n\t"                                                                  \
    "vmladav.s8 r10, q7, q1\n\t"                                                                             \
    "vmov q3[" b "], q3[" a "], r4, r6\n\t"                                                                  \
    "vmov q4[" b "], q4[" a "], r8, r10\n\t"
/* The same for two pixels of up to 32 values, q4 to q7. */
#define MCUD_PAIR_OF_2_SHALLOW(a, b)                                                                         \
    "vmladav.s8 r0, q4, q0\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t"                                                                              \
    "vmladav.s8 r4, q6, q0\n\t"                                                                              \
    "vmladav.s8 r2, q4, q1\n\t"                                                                              \
    "vldrb.8 q0, [r1], #16\n\t"                                                                              \
    "vmladav.s8 r6, q6, q1\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t"                                                                              \
    "vmladava.s8 r0, q5, q0\n\t"                                                                             \
    "vmladava.s8 r4, q7, q0\n\t"                                                                             \
    "vldrb.8 q0, [r1], #16\n\t"                                                                              \
    "vmladava.s8 r2, q5, q1\n\t"                                                                             \
    "vmladava.s8 r6, q7, q1\n\t"                                                                             \
    "vmov q2[" b "], q2[" a "], r0, r2\n\t"                                                                  \
    "vmov q3[" b "], q3[" a "], r4, r6\n\t"

MCUD_NAKED static void mcud_shallow_fours_3(MCUD_UNUSED mcud_shallow_fours *by)
{
    MCUD_SHALLOW_FOURS(
        3, MCUD_LOAD_3_PIXELS,
        MCUD_PAIR_OF_3_SHALLOW("0", "2") MCUD_PAIR_OF_3_SHALLOW("1", "3")
        MCUD_IF_OFFSETS("ldm r9, {r0, r2, r4}\n\t" MCUD_ADD_OFFSET("q2", "r0") MCUD_ADD_OFFSET("q3", "r2")
                        MCUD_ADD_OFFSET("q4", "r4"))
        "vldrw.u32 q1, [r1], #16\n\t"
        MCUD_SCALE_FOUR("q2") MCUD_SCALE_FOUR("q3") MCUD_SCALE_FOUR("q4")
        MCUD_IF_TWICE("vldrw.u32 q1, [r1], #16\n\t")
        MCUD_SCALE_AGAIN("q2", "q1") MCUD_SCALE_AGAIN("q3", "q1") MCUD_SCALE_AGAIN("q4", "q1")
        MCUD_STORE_TWO_FOURS("q2", "q3", "[r3], #4", "[r5], #4", "r12")
        MCUD_STORE_FOUR("q4", "[r7], #4", "r12"));
}

MCUD_NAKED static void mcud_shallow_fours_2(MCUD_UNUSED mcud_shallow_fours *by)
{
    MCUD_SHALLOW_FOURS(
        2, MCUD_LOAD_2_PIXELS,
        MCUD_PAIR_OF_2_SHALLOW("0", "2") MCUD_PAIR_OF_2_SHALLOW("1", "3")
        MCUD_IF_OFFSETS("ldrd r0, r2, [r9]\n\t" MCUD_ADD_OFFSET("q2", "r0") MCUD_ADD_OFFSET("q3", "r2"))
        "vldrw.u32 q1, [r1], #16\n\t"
        MCUD_SCALE_FOUR("q2") MCUD_SCALE_FOUR("q3")
        MCUD_IF_TWICE("vldrw.u32 q1, [r1], #16\n\t")
        MCUD_SCALE_AGAIN("q2", "q1") MCUD_SCALE_AGAIN("q3", "q1")
        MCUD_STORE_TWO_FOURS("q2", "q3", "[r3], #4", "[r5], #4", "r12"));
}

/* `count` pixels of at most 32 values, `step` bytes apart, by all whole records */
MCUD_NOINLINE void mcud_shallow_pixels(const mcud_vector_channels *by, const int8_t *x, int32_t step, int32_t count,
                                       int8_t *y)
{
    const int32_t channels = by->channels & ~3;
    const int32_t size = by->depth > 16 ? 2 : 3;
    const int32_t rest = count % size;
    mcud_shallow_fours blocks = {
        .records = by->records,
        .x = x,
        .y = y,
        .x_step = step,
        .y_step = by->pitch,
        .x_third = step,
        .y_third = by->pitch,
        .next_x = step,
        .fours = by->channels / 4,
        .next_y = size * by->pitch - channels,
        .blocks = count / size,
        .depth = by->depth - (by->depth > 16 ? 16 : 0),
        .zero_point = by->finish.zero_point,
        .offsets = by->offsets,
    };
    for (int32_t part = count >= size ? 0 : 1; part < (rest == 2 ? 2 : 1); part++) {
        if (part == 1) { /* two pixels: the third one repeats the second */
            blocks.blocks = 1;
            blocks.x_third = 0;
            blocks.y_third = 0;
        }
        if (size == 2) {
            mcud_shallow_fours_2(&blocks);
        } else {
            mcud_shallow_fours_3(&blocks);
        }
    }
    if (rest == 1) {
        count -= 1;
        mcud_single_pixels(by, x + count * step, step, 1, y + count * by->pitch,
                           by->offsets != NULL ? by->offsets + count : NULL);
    }
}

/* The same of more than 32 values */
MCUD_NOINLINE void mcud_deep_pixels(const mcud_vector_channels *by, const int8_t *x, int32_t step, int32_t count,
                                    int8_t *y)
{
    const int32_t channels = by->channels & ~3;
    const int32_t ragged = by->depth % 16 != 0 && by->reads_on == 0; /* the last pixel must be taken alone */
    const int32_t *offsets = by->offsets;
    for (int32_t size = 4; size > 1 && count > 0; size /= 2) {
        const int32_t blocks = (count - ragged) / size;
        if (blocks == 0) {
            continue;
        }
        mcud_deep_fours deep = {
            .x = {x, x + step, x + 2 * step, x + 3 * step},
            .vectors = (by->depth + 15) / 16 - (size == 2 ? 2 : 1),
            .pitch = by->pitch,
            .end = y + channels,
            .y = y,
            .zero_point = by->finish.zero_point,
            .records = by->records,
            .blocks = blocks,
            .next_x = size * step,
            .next_end = size * by->pitch,
            .next_y = size * by->pitch - channels,
            .offsets = offsets,
        };
        if (size == 4) {
            mcud_deep_fours_4(&deep);
        } else {
            mcud_deep_fours_2(&deep);
        }
        x += blocks * size * step;
        y += blocks * size * by->pitch;
        offsets += by->offsets != NULL ? blocks * size : 0;
        count -= blocks * size;
    }
    if (count > 0) {
        mcud_single_pixels(by, x, step, count, y, offsets);
    }
}

static inline void mcud_vector_fours(const mcud_vector_channels *by, const int8_t *x, int32_t step, int32_t count,
                                     int8_t *y)
{
    if (by->depth <= 32) {
        mcud_shallow_pixels(by, x, step, count, y);
    } else {
        mcud_deep_pixels(by, x, step, count, y);
    }
}

#endif
