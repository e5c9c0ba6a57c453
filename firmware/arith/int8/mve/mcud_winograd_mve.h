/* mcud_winograd_vector.h by instructions of the M-profile Vector Extension. */
#ifndef MCUD_WINOGRAD_MVE_H
#define MCUD_WINOGRAD_MVE_H

/* Six values along an axis to r6-r11. r12 is -4. */
#define MCUD_TRANSFORM_SIX(load)                                                                             \
    load("q4", "r4", "r10")                                                                                    \
    load("q2", "r2", "r8")                                                                                    \
    "vsub.i16 q6, q4, q2\n\t"                                                                                \
    load("q3", "r3", "r9")                                                                                    \
    "vmla.s16 q4, q2, r12\n\t"                                                                               \
    load("q1", "r1", "r7")                                                                                    \
    "vsub.i16 q7, q3, q1\n\t"                                                                                \
    load("q0", "r0", "r6")                                                                                    \
    "vsub.i16 q0, q0, q2\n\t"                                                                                \
    load("q5", "r5", "r11")                                                                                    \
    "vsub.i16 q5, q5, q3\n\t"                                                                                \
    "vmla.s16 q3, q1, r12\n\t"                                                                               \
    "vshl.i16 q0, q0, #2\n\t"                                                                                \
    "vadd.i16 q1, q4, q3\n\t"                                                                                \
    "vstrh.16 q1, [r7], #32\n\t"                                                                             \
    "vsub.i16 q4, q4, q3\n\t"                                                                                \
    "vstrh.16 q4, [r8], #32\n\t"                                                                             \
    "vadd.i16 q0, q0, q6\n\t"                                                                                \
    "vstrh.16 q0, [r6], #32\n\t"                                                                             \
    "vmla.s16 q5, q7, r12\n\t"                                                                               \
    "vstrh.16 q5, [r11], #32\n\t"                                                                            \
    "vshl.i16 q7, q7, #1\n\t"                                                                                \
    "vadd.i16 q1, q6, q7\n\t"                                                                                \
    "vstrh.16 q1, [r9], #32\n\t"                                                                             \
    "vsub.i16 q6, q6, q7\n\t"                                                                                \
    "vstrh.16 q6, [r10], #32\n\t"

/* Of value i of six, whose address is in the first register or in the second one. */
#define MCUD_LOAD_BYTES(q, bytes, halves) "vldrb.s16 " q ", [" bytes "], #8\n\t"
#define MCUD_LOAD_HALVES(q, bytes, halves) "vldrh.u16 " q ", [" halves "]\n\t"

MCUD_NAKED static void mcud_transform_columns(MCUD_UNUSED const int8_t *const from[6], MCUD_UNUSED int16_t *to,
                                              MCUD_UNUSED int32_t columns, MCUD_UNUSED int32_t groups)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "vpush {d8-d15}\n\t"
        "mul lr, r2, r3\n\t"
        "add r3, r3, r3, lsl #1\n\t" /* 6 positions are 192 bytes by `groups` */
        "lsl r3, r3, #6\n\t"
        "mov r6, r1\n\t"
        "add r7, r6, r3\n\t"
        "add r8, r7, r3\n\t"
        "add r9, r8, r3\n\t"
        "add r10, r9, r3\n\t"
        "add r11, r10, r3\n\t"
        "mvn r12, #3\n\t"
        "ldm r0, {r0-r5}\n\t"
        "wls lr, lr, 2f\n"
        "1:\n\t"
        MCUD_TRANSFORM_SIX(MCUD_LOAD_BYTES)
        "le lr, 1b\n"
        "2:\n\t"
        "vpop {d8-d15}\n\t"
        "pop {r4-r11, pc}\n\t");
}

MCUD_NAKED static void mcud_transform_rows(MCUD_UNUSED int16_t *tile, MCUD_UNUSED int32_t groups)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "vpush {d8-d15}\n\t"
        "lsl r2, r1, #5\n\t" /* a position is 32 bytes by `groups` */
        "mov r6, r0\n\t"
        "add r7, r6, r2\n\t"
        "add r8, r7, r2\n\t"
        "add r9, r8, r2\n\t"
        "add r10, r9, r2\n\t"
        "add r11, r10, r2\n\t"
        "add r2, r2, r2, lsl #2\n\t"
        "movs r3, #6\n\t"
        "mvn r12, #3\n"
        "0:\n\t"
        "dls lr, r1\n"
        "1:\n\t"
        MCUD_TRANSFORM_SIX(MCUD_LOAD_HALVES)
        "le lr, 1b\n\t"
        "add r6, r6, r2\n\t"
        "add r7, r7, r2\n\t"
        "add r8, r8, r2\n\t"
        "add r9, r9, r2\n\t"
        "add r10, r10, r2\n\t"
        "add r11, r11, r2\n\t"
        "subs r3, r3, #1\n\t"
        "bne 0b\n\t"
        "vpop {d8-d15}\n\t"
        "pop {r4-r11, pc}\n\t");
}

/* 14 instructions for 64 products. */
#define MCUD_MULTIPLY_EIGHTS(multiply)                                                                       \
    "vldrh.u16 q0, [r1], #32\n\t"                                                                            \
    "vldrh.u16 q2, [r7], #64\n\t"                                                                            \
    multiply " r0, q0, q2\n\t"                                                                               \
    "vldrh.u16 q1, [r1, #-16]\n\t"                                                                           \
    multiply " r8, q1, q2\n\t"                                                                               \
    "vldrh.u16 q3, [r7, #-48]\n\t"                                                                           \
    multiply " r2, q0, q3\n\t"                                                                               \
    multiply " r10, q1, q3\n\t"                                                                              \
    "vldrh.u16 q2, [r7, #-32]\n\t"                                                                           \
    multiply " r4, q0, q2\n\t"                                                                               \
    multiply " r12, q1, q2\n\t"                                                                              \
    "vldrh.u16 q3, [r7, #-16]\n\t"                                                                           \
    multiply " r6, q0, q3\n\t"                                                                               \
    multiply " lr, q1, q3\n\t"

MCUD_NAKED static void mcud_multiply_eights(MCUD_UNUSED const int32_t *weights, MCUD_UNUSED const int16_t *tiles,
                                            MCUD_UNUSED int32_t *sums, MCUD_UNUSED int32_t groups)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "mov r7, r0\n\t"
        "mov r9, r2\n\t"
        "sub r11, r3, #1\n\t"
        "movs r3, #36\n"
        "0:\n\t"
        MCUD_MULTIPLY_EIGHTS("vmladav.s16")
        "movs r5, r11\n\t"
        "beq 2f\n"
        "1:\n\t"
        MCUD_MULTIPLY_EIGHTS("vmladava.s16")
        "subs r5, r5, #1\n\t"
        "bne 1b\n"
        "2:\n\t"
        "stm r9!, {r0, r2, r4, r6, r8, r10, r12, lr}\n\t"
        "subs r3, r3, #1\n\t"
        "bne 0b\n\t"
        "pop {r4-r11, pc}\n\t");
}

/* q0-q5 -> q0, q2, q6, q1. r8 is 4, r9 8, r10 3. */
#define MCUD_RESULTS_OF_SIX                                                                                  \
    "vadd.i32 q6, q1, q2\n\t"                                                                                \
    "vsub.i32 q1, q1, q2\n\t"                                                                                \
    "vadd.i32 q7, q3, q4\n\t"                                                                                \
    "vsub.i32 q3, q3, q4\n\t"                                                                                \
    "vadd.i32 q0, q0, q6\n\t"                                                                                \
    "vshl.i32 q2, q3, #1\n\t"                                                                                \
    "vmla.s32 q6, q7, r8\n\t"                                                                                \
    "vadd.i32 q2, q2, q1\n\t"                                                                                \
    "vmla.s32 q1, q3, r9\n\t"                                                                                \
    "vadd.i32 q0, q0, q7\n\t"                                                                                \
    "vmla.s32 q1, q5, r10\n\t"

/* Results of a pixel. r5 the inverse of 9, q7 multipliers, q5 powers, r12 zero. */
#if MCUD_FACTORS == 2
#define MCUD_RESULT(q, y)                                                                                    \
    "vmul.i32 " q ", " q ", r5\n\t"                                                                          \
    "vshr.s32 " q ", " q ", #6\n\t"                                                                          \
    "vqrdmulh.s32 " q ", " q ", q7\n\t"                                                                      \
    "vrmulh.s32 " q ", " q ", q5\n\t"                                                                        \
    "vadd.i32 " q ", " q ", r12\n\t"                                                                         \
    "vqmovnb.s32 " q ", " q "\n\t"                                                                           \
    "vqmovnb.s16 " q ", " q "\n\t"                                                                           \
    "vstrb.32 " q ", " y "\n\t"
#define MCUD_BIASES "vldrw.u32 q0, [r1]\n\t"
#define MCUD_KEEP_FACTORS                                                                                    \
    "vldrw.u32 q0, [r1, #16]\n\t"                                                                            \
    "vldrw.u32 q1, [r1, #32]\n\t"                                                                            \
    "vstrw.32 q0, [r11]\n\t"                                                                                 \
    "vstrw.32 q1, [r11, #32]\n\t"
#else
#define MCUD_BIASES "vld20.32 {q0, q1}, [r1]\n\tvld21.32 {q0, q1}, [r1]\n\t"
#define MCUD_KEEP_FACTORS MCUD_BIASES "vstrw.32 q1, [r11]\n\t"
#define MCUD_RESULT(q, y)                                                                                    \
    "vmul.i32 " q ", " q ", r5\n\t"                                                                          \
    "vmulh.s32 " q ", " q ", q7\n\t"                                                                         \
    "vadd.i32 " q ", " q ", r12\n\t"                                                                         \
    "vqrshrnb.s32 " q ", " q ", #6\n\t"                                                                       \
    "vqmovnb.s16 " q ", " q "\n\t"                                                                           \
    "vstrb.32 " q ", " y "\n\t"
#endif

/* The sixes of columns are done first, in place; then the multipliers lie after the four rows left. */
MCUD_NAKED static void mcud_finish_four(MCUD_UNUSED int32_t *sums, MCUD_UNUSED const int32_t *factors,
                                        MCUD_UNUSED const mcud_four_results *to)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "vpush {d8-d15}\n\t" MCUD_BIASES
        "vldrw.u32 q2, [r0, #224]\n\t"
        "vadd.i32 q2, q2, q0\n\t"
        "vstrw.32 q2, [r0, #224]\n\t"
        "movs r6, #6\n\t"
        "dls lr, r6\n\t"
        "mov r7, r0\n\t"
        "add r11, r0, #576\n\t"
        "mov r8, #4\n\t"
        "mov r9, #8\n\t"
        "mov r10, #3\n"
        "1:\n\t"
        "vldrw.u32 q1, [r7, #192]\n\t"
        "vldrw.u32 q2, [r7, #384]\n\t"
        "vldrw.u32 q3, [r11]\n\t"
        "vldrw.u32 q4, [r11, #192]\n\t"
        "vldrw.u32 q0, [r7]\n\t"
        "vldrw.u32 q5, [r11, #384]\n\t"
        MCUD_RESULTS_OF_SIX
        "vstrw.32 q2, [r7, #192]\n\t"
        "vstrw.32 q6, [r7, #384]\n\t"
        "vstrw.32 q0, [r7], #32\n\t"
        "vstrw.32 q1, [r11], #32\n\t"
        "le lr, 1b\n\t"
        MCUD_KEEP_FACTORS
        "ldm r2, {r1-r3, r12}\n\t"
        "movs r6, #4\n\t"
        "movw r5, #0x8e39\n\t"
        "movt r5, #0x38e3\n\t"
        "dls lr, r6\n"
        "2:\n\t"
        "add r6, r1, r2\n\t"
        "vldrw.u32 q1, [r0, #32]\n\t"
        "add r7, r6, r2\n\t"
        "vldrw.u32 q2, [r0, #64]\n\t"
        "add r4, r7, r2\n\t"
        "vldrw.u32 q3, [r0, #96]\n\t"
        "vldrw.u32 q4, [r0, #128]\n\t"
        "vldrw.u32 q5, [r0, #160]\n\t"
        "vldrw.u32 q0, [r0], #192\n\t"
        MCUD_RESULTS_OF_SIX
        "vldrw.u32 q7, [r11]\n\t" MCUD_IF_TWICE("vldrw.u32 q5, [r11, #32]\n\t")
        MCUD_RESULT("q0", "[r1]")
        MCUD_RESULT("q2", "[r6]")
        MCUD_RESULT("q6", "[r7]")
        MCUD_RESULT("q1", "[r4]")
        "add r1, r1, r3\n\t"
        "le lr, 2b\n\t"
        "vpop {d8-d15}\n\t"
        "pop {r4-r11, pc}\n\t");
}

#endif
