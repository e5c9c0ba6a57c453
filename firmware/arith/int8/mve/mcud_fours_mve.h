/* Pixels by four channels by the M-profile Vector Extension: a part of mcud_dot_vector_s8.h. */
#ifndef MCUD_FOURS_MVE_H
#define MCUD_FOURS_MVE_H

#include <stdint.h>

#include "mcud_compiler.h"

/* Up to three pixels of more than 16 values, in the order that assembler assumes. */
typedef struct {
    const int8_t *x[3];
    const int8_t *end; /* of the first pixel's results */
    int32_t pitch;
    const int32_t *records;
    int32_t rest; /* values after the first 16 */
    int8_t *y;
    int32_t zero_point;
} mcud_deep_fours;

/* Three pixels of at most 16 values. */
typedef struct {
    const int32_t *records;
    const int8_t *x0;
    int8_t *y0;
    const int8_t *x1;
    int8_t *y1;
    const int8_t *x2;
    int8_t *y2;
    int32_t depth;
    int32_t fours;
    int32_t zero_point;
} mcud_shallow_fours;

/* 16 values of two channels, r1 their weights, by those of pixels. */
#define MCUD_WEIGHTS_OF_PAIR                                                                                 \
    "vldrb.8 q0, [r1], #16\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t"
#define MCUD_BY_PIXEL(multiply, x, first, second)                                                            \
    "vldrb.8 q2, [" x "], #16\n\t" multiply " " first ", q2, q0\n\t" multiply " " second ", q2, q1\n\t"
#define MCUD_BY_1(multiply) MCUD_BY_PIXEL(multiply, "r3", "r0", "r2")
#define MCUD_BY_2(multiply) MCUD_BY_1(multiply) MCUD_BY_PIXEL(multiply, "r5", "r4", "r6")
#define MCUD_BY_3(multiply) MCUD_BY_2(multiply) MCUD_BY_PIXEL(multiply, "r7", "r8", "r10")

/* The sums of a pair to two lanes of each pixel, q3 to q5. */
#define MCUD_LANES_1(a, b) "vmov q3[" b "], q3[" a "], r0, r2\n\t"
#define MCUD_LANES_2(a, b) MCUD_LANES_1(a, b) "vmov q4[" b "], q4[" a "], r4, r6\n\t"
#define MCUD_LANES_3(a, b) MCUD_LANES_2(a, b) "vmov q5[" b "], q5[" a "], r8, r10\n\t"

#define MCUD_FIND_1 "ldr r3, [sp]\n\t"
#define MCUD_FIND_2 "ldrd r3, r5, [sp]\n\t"
#define MCUD_FIND_3 MCUD_FIND_2 "ldr r7, [sp, #8]\n\t"

/* Four lanes of sums, with their biases in q0, multipliers in q1, powers of two in `power` and the zero point in r12. */
#if MCUD_FACTORS == 2
#define MCUD_SCALE_FIRST "vqrdmulh.s32 "
#define MCUD_SCALE_AGAIN(q, power) "vrmulh.s32 " q ", " q ", " power "\n\t"
#define MCUD_SAVED "{d8-d13}"
#else
#define MCUD_SCALE_FIRST "vrmulh.s32 "
#define MCUD_SCALE_AGAIN(q, power)
#define MCUD_SAVED "{d8-d11}"
#endif
#define MCUD_SCALE_FOUR(q)                                                                                   \
    "vadd.i32 " q ", " q ", q0\n\t" MCUD_SCALE_FIRST q ", " q ", q1\n\t"
#define MCUD_STORE_FOUR(q, y)                                                                                \
    "vadd.i32 " q ", " q ", r12\n\t"                                                                         \
    "vqmovnb.s32 " q ", " q "\n\t"                                                                           \
    "vqmovnb.s16 " q ", " q "\n\t"                                                                           \
    "vstrb.32 " q ", " y "\n\t"
#define MCUD_RESULTS_1                                                                                       \
    "mov r0, r11\n\t" MCUD_SCALE_FOUR("q3") MCUD_SCALE_AGAIN("q3", "q6") MCUD_STORE_FOUR("q3", "[r0]")
#define MCUD_RESULTS_2                                                                                       \
    "ldr r6, [sp, #16]\n\t" MCUD_RESULTS_1                                                                   \
    "add r2, r0, r6\n\t" MCUD_SCALE_FOUR("q4") MCUD_SCALE_AGAIN("q4", "q6") MCUD_STORE_FOUR("q4", "[r2]")
#define MCUD_RESULTS_3                                                                                       \
    MCUD_RESULTS_2                                                                                           \
    "add r4, r2, r6\n\t" MCUD_SCALE_FOUR("q5") MCUD_SCALE_AGAIN("q5", "q6") MCUD_STORE_FOUR("q5", "[r4]")

/* Two channels of pixels to lanes `a` and `b`. */
#define MCUD_PAIR_OF(n, a, b)                                                                                \
    MCUD_FIND_##n MCUD_WEIGHTS_OF_PAIR MCUD_BY_##n("vmladav.s8")                                             \
    "wlstp.8 lr, r9, 2" a "f\n"                                                                             \
    "1" a ":\n\t" MCUD_WEIGHTS_OF_PAIR MCUD_BY_##n("vmladava.s8")                                             \
    "letp lr, 1" a "b\n"                                                                                    \
    "2" a ":\n\t" MCUD_LANES_##n(a, b)

/* r1 records, r11 y. Stack: x[3], end, pitch. */
#define MCUD_DEEP_FOURS(n)                                                                                   \
    __asm__(                                                                                                 \
        "push {r4-r11, lr}\n\t"                                                                              \
        "vpush " MCUD_SAVED "\n\t"                                                                           \
        "ldm r0!, {r3-r7}\n\t"                                                                               \
        "push {r3-r7}\n\t"                                                                                   \
        "ldm r0, {r1, r9, r11, r12}\n"                                                                       \
        "9:\n\t" MCUD_PAIR_OF(n, "0", "2") MCUD_PAIR_OF(n, "1", "3")                                         \
        "vldrw.u32 q0, [r1], #16\n\t"                                                                        \
        "vldrw.u32 q1, [r1], #16\n\t"                                                                        \
        MCUD_IF_TWICE("vldrw.u32 q6, [r1], #16\n\t") MCUD_RESULTS_##n                                        \
        "ldr r6, [sp, #12]\n\t"                                                                              \
        "add r11, r11, #4\n\t"                                                                               \
        "cmp r11, r6\n\t"                                                                                    \
        "bne 9b\n\t"                                                                                         \
        "add sp, sp, #20\n\t"                                                                                \
        "vpop " MCUD_SAVED "\n\t"                                                                            \
        "pop {r4-r11, pc}\n\t")

MCUD_NAKED static void mcud_deep_fours_3(MCUD_UNUSED const mcud_deep_fours *by)
{
    MCUD_DEEP_FOURS(3);
}

MCUD_NAKED static void mcud_deep_fours_2(MCUD_UNUSED const mcud_deep_fours *by)
{
    MCUD_DEEP_FOURS(2);
}

MCUD_NAKED static void mcud_deep_fours_1(MCUD_UNUSED const mcud_deep_fours *by)
{
    MCUD_DEEP_FOURS(1);
}

/* Two channels of three pixels, q5 to q7, to two lanes of each. */
#define MCUD_SHALLOW_PAIR(a, b)                                                                              \
    "vldrb.8 q0, [r1], #16\n\t"                                                                              \
    "vmladav.s8 r0, q5, q0\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t"                                                                              \
    "vmladav.s8 r2, q5, q1\n\t"                                                                              \
    "vmladav.s8 r4, q6, q0\n\t"                                                                              \
    "vmov q2[" b "], q2[" a "], r0, r2\n\t"                                                                  \
    "vmladav.s8 r6, q6, q1\n\t"                                                                              \
    "vmladav.s8 r8, q7, q0\n\t"                                                                              \
    "vmov q3[" b "], q3[" a "], r4, r6\n\t"                                                                  \
    "vmladav.s8 r10, q7, q1\n\t"                                                                             \
    "vmov q4[" b "], q4[" a "], r8, r10\n\t"

MCUD_NAKED static void mcud_shallow_fours_3(MCUD_UNUSED const mcud_shallow_fours *by)
{
    __asm__(
        "push {r4-r10, lr}\n\t"
        "vpush {d8-d15}\n\t"
        "ldm r0, {r1-r9, r12}\n\t"
        "vctp.8 r8\n\t"
        "vpsttt\n\t"
        "vldrbt.8 q5, [r2]\n\t"
        "vldrbt.8 q6, [r4]\n\t"
        "vldrbt.8 q7, [r6]\n\t"
        "dls lr, r9\n"
        "1:\n\t"
        MCUD_SHALLOW_PAIR("0", "2")
        MCUD_SHALLOW_PAIR("1", "3")
        "vldrw.u32 q0, [r1], #16\n\t"
        "vldrw.u32 q1, [r1], #16\n\t"
        MCUD_SCALE_FOUR("q2")
        MCUD_SCALE_FOUR("q3")
        MCUD_SCALE_FOUR("q4")
        MCUD_IF_TWICE("vldrw.u32 q1, [r1], #16\n\t")
        MCUD_SCALE_AGAIN("q2", "q1")
        MCUD_SCALE_AGAIN("q3", "q1")
        MCUD_SCALE_AGAIN("q4", "q1")
        MCUD_STORE_FOUR("q2", "[r3], #4")
        MCUD_STORE_FOUR("q3", "[r5], #4")
        MCUD_STORE_FOUR("q4", "[r7], #4")
        "le lr, 1b\n\t"
        "vpop {d8-d15}\n\t"
        "pop {r4-r10, pc}\n\t");
}

/* `count` pixels, 1 to 3, by groups of 4 channels; see mcud_dot_vector_s8.h. */
static inline void mcud_vector_fours(const int8_t *const x[3], int32_t count, int32_t depth, const int32_t *records,
                                     int32_t zero_point, int8_t *y, int32_t channels, int32_t pitch)
{
    if (depth <= 16) {
        const int32_t second = count > 1;
        const int32_t third = count > 2 ? 2 : second; /* a pixel that is missing is another one again */
        const mcud_shallow_fours shallow = {records, x[0], y, x[second], y + second * pitch, x[third],
                                            y + third * pitch, depth, channels / 4, zero_point};
        mcud_shallow_fours_3(&shallow);
        return;
    }
    const mcud_deep_fours deep = {{x[0], x[count > 1], x[count - 1]}, y + channels, pitch, records, depth - 16, y,
                                  zero_point};
    if (count == 3) {
        mcud_deep_fours_3(&deep);
    } else if (count == 2) {
        mcud_deep_fours_2(&deep);
    } else {
        mcud_deep_fours_1(&deep);
    }
}

#endif
