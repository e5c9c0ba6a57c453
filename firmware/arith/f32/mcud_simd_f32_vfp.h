/* mcud_simd_f32.h for Arm cores whose FPU has VFMA: Cortex-M4F, M7, M33 and up. Loads take several values at
 * a time, for one instruction. Sums come from memory and go back there once in each run of values: two
 * instructions for all of them, and no run needs to know what another one left in the registers. */
#ifndef MCUD_SIMD_F32_VFP_H
#define MCUD_SIMD_F32_VFP_H

#include "mcud_mac_f32_vfp.h"

/* Eight weights: all in s24 to s31, or by four in s24 to s27 where s28 to s31 are products. */
#if MCUD_FUSES_F32
#define MCUD_FIRST_WEIGHTS_F32 "vldmia %[w]!, {s24-s31}\n\t"
#define MCUD_NEXT_WEIGHTS_F32
#define MCUD_NEXT_FOUR MCUD_S28
#else
#define MCUD_FIRST_WEIGHTS_F32 "vldmia %[w]!, {s24-s27}\n\t"
#define MCUD_NEXT_WEIGHTS_F32 "vldmia %[w]!, {s24-s27}\n\t"
#define MCUD_NEXT_FOUR MCUD_S24
#endif

/* Two values of four pixels and four channels: 37 instructions for 32 products. */
#define MCUD_TWO_4X4_F32                                                                                     \
    "vldmia %[x]!, {s16-s17}\n\t"                                                                            \
    "vldmia %[x1]!, {s18-s19}\n\t"                                                                           \
    "vldmia %[x2]!, {s20-s21}\n\t"                                                                           \
    "vldmia %[x3]!, {s22-s23}\n\t"                                                                           \
    MCUD_FIRST_WEIGHTS_F32                                                                                   \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s16"), MCUD_S24, MCUD_S28)                                             \
    MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s18"), MCUD_S24, MCUD_S28)                                             \
    MCUD_MAC4_F32(MCUD_S8, MCUD_SAME("s20"), MCUD_S24, MCUD_S28)                                             \
    MCUD_MAC4_F32(MCUD_S12, MCUD_SAME("s22"), MCUD_S24, MCUD_S28)                                            \
    MCUD_NEXT_WEIGHTS_F32                                                                                    \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s17"), MCUD_NEXT_FOUR, MCUD_S28)                                       \
    MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s19"), MCUD_NEXT_FOUR, MCUD_S28)                                       \
    MCUD_MAC4_F32(MCUD_S8, MCUD_SAME("s21"), MCUD_NEXT_FOUR, MCUD_S28)                                       \
    MCUD_MAC4_F32(MCUD_S12, MCUD_SAME("s23"), MCUD_NEXT_FOUR, MCUD_S28)

/* One value of each. */
#define MCUD_ONE_4X4_F32                                                                                     \
    "vldmia %[x]!, {s16}\n\t"                                                                                \
    "vldmia %[x1]!, {s18}\n\t"                                                                               \
    "vldmia %[x2]!, {s20}\n\t"                                                                               \
    "vldmia %[x3]!, {s22}\n\t"                                                                               \
    "vldmia %[w]!, {s24-s27}\n\t"                                                                            \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s16"), MCUD_S24, MCUD_S28)                                             \
    MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s18"), MCUD_S24, MCUD_S28)                                             \
    MCUD_MAC4_F32(MCUD_S8, MCUD_SAME("s20"), MCUD_S24, MCUD_S28)                                             \
    MCUD_MAC4_F32(MCUD_S12, MCUD_SAME("s22"), MCUD_S24, MCUD_S28)

/* x[values], x[step + values], ..., w[values][4] */
static inline void mcud_add_4x4_f32(const float *x, int32_t step, const float *w, int32_t values,
                                    float sums[16])
{
    const float *x1 = x + step;
    const float *x2 = x1 + step;
    const float *x3 = x2 + step;
    __asm__ volatile(
        "vldmia %[sums], {s0-s15}\n\t"
        "subs %[left], %[left], #2\n\t"
        "blt 2f\n"
        "1:\n\t"
        MCUD_TWO_4X4_F32
        "subs %[left], %[left], #2\n\t"
        "bge 1b\n"
        "2:\n\t"
        "lsls %[left], %[left], #31\n\t" /* -1 for one value left, else -2 */
        "beq 3f\n\t"
        MCUD_ONE_4X4_F32
        "3:\n\t"
        "vstmia %[sums], {s0-s15}\n\t"
        : [x] "+r"(x), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+r"(w), [left] "+r"(values)
        : [sums] "r"(sums)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* Four values of one pixel and four channels: 18 instructions for 16 products. */
#define MCUD_FOUR_1X4_F32                                                                                    \
    "vldmia %[x]!, {s4-s7}\n\t"                                                                              \
    "vldmia %[w]!, {s16-s31}\n\t"                                                                            \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s4"), MCUD_S16, MCUD_S16)                                              \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s5"), MCUD_S20, MCUD_S20)                                              \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s6"), MCUD_S24, MCUD_S24)                                              \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s7"), MCUD_S28, MCUD_S28)

/* A NaN is neither less (mi) nor greater (gt). */
#define MCUD_RAISE_F32(reg)                                                                                  \
    "vcmp.f32 " reg ", %[low]\n\t"                                                                           \
    "vmrs APSR_nzcv, fpscr\n\t"                                                                              \
    "it mi\n\t"                                                                                              \
    "vmovmi.f32 " reg ", %[low]\n\t"
#define MCUD_CLAMP_F32(reg)                                                                                  \
    MCUD_RAISE_F32(reg)                                                                                      \
    "vcmp.f32 " reg ", %[high]\n\t"                                                                          \
    "vmrs APSR_nzcv, fpscr\n\t"                                                                              \
    "it gt\n\t"                                                                                              \
    "vmovgt.f32 " reg ", %[high]\n\t"

#define MCUD_ALL_1X4_F32                                                                                     \
    "subs %[left], %[left], #4\n\t"                                                                          \
    "blt 2f\n"                                                                                               \
    "1:\n\t"                                                                                                 \
    MCUD_FOUR_1X4_F32                                                                                        \
    "subs %[left], %[left], #4\n\t"                                                                          \
    "bge 1b\n"                                                                                               \
    "2:\n\t"                                                                                                 \
    "adds %[left], %[left], #4\n\t"                                                                          \
    "beq 4f\n"                                                                                               \
    "3:\n\t"                                                                                                 \
    "vldmia %[x]!, {s4}\n\t"                                                                                 \
    "vldmia %[w]!, {s16-s19}\n\t"                                                                            \
    MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s4"), MCUD_S16, MCUD_S16)                                              \
    "subs %[left], %[left], #1\n\t"                                                                          \
    "bne 3b\n"                                                                                               \
    "4:\n\t"

/* x[values], w[values][4] */
static inline void mcud_add_1x4_f32(const float *x, const float *w, int32_t values, float sums[4])
{
    __asm__ volatile(
        "vldmia %[sums], {s0-s3}\n\t"
        MCUD_ALL_1X4_F32
        "vstmia %[sums], {s0-s3}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [left] "+r"(values)
        : [sums] "r"(sums)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* What assembler for one pixel may change: not the registers of a bound. */
#define MCUD_FLOATS_OF_PIXEL                                                                                 \
    MCUD_S0, MCUD_S4, MCUD_S8, MCUD_S16, MCUD_S20, MCUD_S24, MCUD_S28

/* x[values], w[values][4] */
static inline void mcud_raised_1x4_f32(const float *x, const float *w, int32_t values, const mcud_base_f32 *base,
                                       float y[4])
{
    __asm__ volatile(
        "vldmia %[bias], {s0-s3}\n\t"
        MCUD_ALL_1X4_F32
        MCUD_RAISE_F32("s0")
        MCUD_RAISE_F32("s1")
        MCUD_RAISE_F32("s2")
        MCUD_RAISE_F32("s3")
        "vstmia %[y], {s0-s3}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [left] "+r"(values)
        : [bias] "r"(base->bias), [low] "t"(base->low), [y] "r"(y)
        : MCUD_FLOATS_OF_PIXEL, "cc", "memory");
}

/* Four values of one pixel, which are in s8 to s11, and four channels. */
#define MCUD_FOUR_OF_PAIR_F32(w, a, b, c, d)                                                                 \
    "vldmia %[" w "]!, {s16-s31}\n\t"                                                                        \
    MCUD_MAC4_F32(a, b, c, d, MCUD_SAME("s8"), MCUD_S16, MCUD_S16)                                           \
    MCUD_MAC4_F32(a, b, c, d, MCUD_SAME("s9"), MCUD_S20, MCUD_S20)                                           \
    MCUD_MAC4_F32(a, b, c, d, MCUD_SAME("s10"), MCUD_S24, MCUD_S24)                                          \
    MCUD_MAC4_F32(a, b, c, d, MCUD_SAME("s11"), MCUD_S28, MCUD_S28)

/* One value of one pixel. */
#define MCUD_ONE_OF_PAIR_F32(w, a, b, c, d)                                                                  \
    "vldmia %[" w "]!, {s16-s19}\n\t"                                                                        \
    MCUD_MAC4_F32(a, b, c, d, MCUD_SAME("s8"), MCUD_S16, MCUD_S16)

/* x[values], w[2][values][4]: 37 instructions for 32 products */
static inline void mcud_raised_1x8_f32(const float *x, const float *w, int32_t values, const mcud_base_f32 *base,
                                       float y[8])
{
    const float *next = w + 4 * values;
    __asm__ volatile(
        "vldmia %[bias], {s0-s7}\n\t"
        "subs %[left], %[left], #4\n\t"
        "blt 2f\n"
        "1:\n\t"
        "vldmia %[x]!, {s8-s11}\n\t"
        MCUD_FOUR_OF_PAIR_F32("w", "s0", "s1", "s2", "s3")
        MCUD_FOUR_OF_PAIR_F32("next", "s4", "s5", "s6", "s7")
        "subs %[left], %[left], #4\n\t"
        "bge 1b\n"
        "2:\n\t"
        "adds %[left], %[left], #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        "vldmia %[x]!, {s8}\n\t"
        MCUD_ONE_OF_PAIR_F32("w", "s0", "s1", "s2", "s3")
        MCUD_ONE_OF_PAIR_F32("next", "s4", "s5", "s6", "s7")
        "subs %[left], %[left], #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        MCUD_RAISE_F32("s0")
        MCUD_RAISE_F32("s1")
        MCUD_RAISE_F32("s2")
        MCUD_RAISE_F32("s3")
        MCUD_RAISE_F32("s4")
        MCUD_RAISE_F32("s5")
        MCUD_RAISE_F32("s6")
        MCUD_RAISE_F32("s7")
        "vstmia %[y], {s0-s7}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [next] "+r"(next), [left] "+r"(values)
        : [bias] "r"(base->bias), [low] "t"(base->low), [y] "r"(y)
        : MCUD_FLOATS_OF_PIXEL, "cc", "memory");
}

/* x[count][8], w[count][8]: one row of the taps */
static inline void mcud_add_taps_8_f32(const float *x, const float *w, const mcud_window_taps_f32 *taps, float sums[8])
{
    int32_t left = taps->count;
    if (left <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[sums], {s0-s7}\n"
        "1:\n\t"
        "vldmia %[x], {s8-s15}\n\t"
        "vldmia %[w], {s16-s23}\n\t"
        "add %[x], %[x], %[x_pitch], lsl #2\n\t"
        "add %[w], %[w], %[w_pitch], lsl #2\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_S8, MCUD_S16, MCUD_S16)
        MCUD_MAC4_F32(MCUD_S4, MCUD_S12, MCUD_S20, MCUD_S20)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s7}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [left] "+r"(left)
        : [sums] "r"(sums), [x_pitch] "r"(taps->x_pitch), [w_pitch] "r"(taps->w_pitch)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* x[values], w[values][8], whose lines lie `pitch` values apart: 13 instructions for 8 products */
static inline void mcud_add_lines_8_f32(const float *x, const float *w, int32_t pitch, int32_t values, float sums[8])
{
    if (values <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[sums], {s0-s7}\n"
        "1:\n\t"
        "vldmia %[x]!, {s8}\n\t"
        "vldmia %[w], {s16-s23}\n\t"
        "add %[w], %[w], %[pitch], lsl #2\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s8"), MCUD_S16, MCUD_S16)
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s8"), MCUD_S20, MCUD_S20)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s7}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [left] "+r"(values)
        : [sums] "r"(sums), [pitch] "r"(pitch)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* See mcud_clamp_f32.h. */
static inline void mcud_clamp_4_f32(const float sums[4], float low, float high, float *y)
{
    __asm__ volatile(
        "vldmia %[sums], {s0-s3}\n\t"
        MCUD_CLAMP_F32("s0")
        MCUD_CLAMP_F32("s1")
        MCUD_CLAMP_F32("s2")
        MCUD_CLAMP_F32("s3")
        "vstmia %[y], {s0-s3}\n\t"
        :
        : [sums] "r"(sums), [low] "t"(low), [high] "t"(high), [y] "r"(y)
        : "s0", "s1", "s2", "s3", "cc", "memory");
}

#endif
