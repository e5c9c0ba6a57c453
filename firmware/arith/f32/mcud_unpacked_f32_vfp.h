/* mcud_unpacked_f32.h for Arm cores whose FPU has VFMA: Cortex-M4F, M7, M33 and up. */
#ifndef MCUD_UNPACKED_F32_VFP_H
#define MCUD_UNPACKED_F32_VFP_H

#include "mcud_mac_f32_vfp.h"

/* Registers of the same value in four lines. */
#define MCUD_S16_BY_4 "s16", "s20", "s24", "s28"
#define MCUD_S17_BY_4 "s17", "s21", "s25", "s29"
#define MCUD_S18_BY_4 "s18", "s22", "s26", "s30"
#define MCUD_S19_BY_4 "s19", "s23", "s27", "s31"

/* x[values], x[pitches->pixels + values], w[values], w[pitches->lines + values], ...
 * Four values at a time: 40 instructions for 32 products. */
static inline void mcud_add_unpacked_2x4_f32(const float *x, const float *w, const mcud_pitches_f32 *pitches,
                                             int32_t values, float sums[8])
{
    const float *x1 = x + pitches->pixels;
    const float *w1 = w + pitches->lines;
    const float *w2 = w1 + pitches->lines;
    const float *w3 = w2 + pitches->lines;
    __asm__ volatile(
        "vldmia %[sums], {s0-s7}\n\t"
        "subs %[left], %[left], #4\n\t"
        "blt 2f\n"
        "1:\n\t"
        "vldmia %[x]!, {s8-s11}\n\t"
        "vldmia %[w]!, {s16-s19}\n\t"
        "vldmia %[w1]!, {s20-s23}\n\t"
        "vldmia %[w2]!, {s24-s27}\n\t"
        "vldmia %[w3]!, {s28-s31}\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s8"), MCUD_S16_BY_4, MCUD_S12)
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s9"), MCUD_S17_BY_4, MCUD_S12)
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s10"), MCUD_S18_BY_4, MCUD_S12)
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s11"), MCUD_S19_BY_4, MCUD_S12)
        "vldmia %[x1]!, {s8-s11}\n\t"
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s8"), MCUD_S16_BY_4, MCUD_S16_BY_4)
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s9"), MCUD_S17_BY_4, MCUD_S17_BY_4)
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s10"), MCUD_S18_BY_4, MCUD_S18_BY_4)
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s11"), MCUD_S19_BY_4, MCUD_S19_BY_4)
        "subs %[left], %[left], #4\n\t"
        "bge 1b\n"
        "2:\n\t"
        "adds %[left], %[left], #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        "vldmia %[x]!, {s8}\n\t"
        "vldmia %[x1]!, {s12}\n\t"
        "vldmia %[w]!, {s16}\n\t"
        "vldmia %[w1]!, {s20}\n\t"
        "vldmia %[w2]!, {s24}\n\t"
        "vldmia %[w3]!, {s28}\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s8"), MCUD_S16_BY_4, MCUD_S17_BY_4)
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s12"), MCUD_S16_BY_4, MCUD_S17_BY_4)
        "subs %[left], %[left], #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        "vstmia %[sums], {s0-s7}\n\t"
        : [x] "+r"(x), [x1] "+r"(x1), [w] "+r"(w), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [left] "+r"(values)
        : [sums] "r"(sums)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* x[values], w[values], w[pitch + values], ...
 * Four values at a time: 23 instructions for 16 products. */
static inline void mcud_add_unpacked_1x4_f32(const float *x, const float *w, int32_t pitch, int32_t values,
                                             float sums[4])
{
    const float *w1 = w + pitch;
    const float *w2 = w1 + pitch;
    const float *w3 = w2 + pitch;
    __asm__ volatile(
        "vldmia %[sums], {s0-s3}\n\t"
        "subs %[left], %[left], #4\n\t"
        "blt 2f\n"
        "1:\n\t"
        "vldmia %[x]!, {s4-s7}\n\t"
        "vldmia %[w]!, {s16-s19}\n\t"
        "vldmia %[w1]!, {s20-s23}\n\t"
        "vldmia %[w2]!, {s24-s27}\n\t"
        "vldmia %[w3]!, {s28-s31}\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s4"), MCUD_S16_BY_4, MCUD_S16_BY_4)
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s5"), MCUD_S17_BY_4, MCUD_S17_BY_4)
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s6"), MCUD_S18_BY_4, MCUD_S18_BY_4)
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s7"), MCUD_S19_BY_4, MCUD_S19_BY_4)
        "subs %[left], %[left], #4\n\t"
        "bge 1b\n"
        "2:\n\t"
        "adds %[left], %[left], #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        "vldmia %[x]!, {s4}\n\t"
        "vldmia %[w]!, {s16}\n\t"
        "vldmia %[w1]!, {s20}\n\t"
        "vldmia %[w2]!, {s24}\n\t"
        "vldmia %[w3]!, {s28}\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s4"), MCUD_S16_BY_4, MCUD_S16_BY_4)
        "subs %[left], %[left], #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        "vstmia %[sums], {s0-s3}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [left] "+r"(values)
        : [sums] "r"(sums)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#endif
