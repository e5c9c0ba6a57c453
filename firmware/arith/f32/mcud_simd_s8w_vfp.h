/* mcud_simd_s8w.h for Arm cores whose FPU has VFMA: Cortex-M4F, M7, M33 and up. */
#ifndef MCUD_SIMD_S8W_VFP_H
#define MCUD_SIMD_S8W_VFP_H

/* Widens four weights at `w`, of channels whose scales are in registers, to s20 to s23: all four, or two at a time
 * where registers are few. */
#define MCUD_WIDEN_PAIRS_S8W(w, scale_a, scale_b, scale_c, scale_d)                                          \
    "ldrsb %[t0], [%[" w "], #2]\n\t"                                                                        \
    "ldrsb %[t1], [%[" w "], #3]\n\t"                                                                        \
    "vmov s22, s23, %[t0], %[t1]\n\t"                                                                        \
    "ldrsb %[t1], [%[" w "], #1]\n\t"                                                                        \
    "ldrsb %[t0], [%[" w "]], #4\n\t"                                                                        \
    "vmov s20, s21, %[t0], %[t1]\n\t"                                                                        \
    "vcvt.f32.s32 s20, s20\n\t"                                                                              \
    "vcvt.f32.s32 s21, s21\n\t"                                                                              \
    "vcvt.f32.s32 s22, s22\n\t"                                                                              \
    "vcvt.f32.s32 s23, s23\n\t"                                                                              \
    "vmul.f32 s20, s20, " scale_a "\n\t"                                                                     \
    "vmul.f32 s21, s21, " scale_b "\n\t"                                                                     \
    "vmul.f32 s22, s22, " scale_c "\n\t"                                                                     \
    "vmul.f32 s23, s23, " scale_d "\n\t"
#define MCUD_WIDEN_FOUR_S8W(w, scale_a, scale_b, scale_c, scale_d)                                           \
    "ldrsb %[t1], [%[" w "], #1]\n\t"                                                                        \
    "ldrsb %[t2], [%[" w "], #2]\n\t"                                                                        \
    "ldrsb %[t3], [%[" w "], #3]\n\t"                                                                        \
    "ldrsb %[t0], [%[" w "]], #4\n\t"                                                                        \
    "vmov s20, s21, %[t0], %[t1]\n\t"                                                                        \
    "vmov s22, s23, %[t2], %[t3]\n\t"                                                                        \
    "vcvt.f32.s32 s20, s20\n\t"                                                                              \
    "vcvt.f32.s32 s21, s21\n\t"                                                                              \
    "vcvt.f32.s32 s22, s22\n\t"                                                                              \
    "vcvt.f32.s32 s23, s23\n\t"                                                                              \
    "vmul.f32 s20, s20, " scale_a "\n\t"                                                                     \
    "vmul.f32 s21, s21, " scale_b "\n\t"                                                                     \
    "vmul.f32 s22, s22, " scale_c "\n\t"                                                                     \
    "vmul.f32 s23, s23, " scale_d "\n\t"

/* x[values], x[step + values], ..., w[values][4]: 37 instructions for 16 products */
static inline void mcud_add_4x4_s8w(const float *x, int32_t step, const int8_t *w, const float scale[4],
                                    int32_t values, float sums[16])
{
    const float *x1 = x + step;
    const float *x2 = x1 + step;
    const float *x3 = x2 + step;
    int32_t t0;
    int32_t t1;
    if (values <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[sums], {s0-s15}\n\t"
        "vldmia %[scale], {s24-s27}\n"
        "1:\n\t"
        MCUD_WIDEN_PAIRS_S8W("w", "s24", "s25", "s26", "s27")
        "vldmia %[x]!, {s16}\n\t"
        "vldmia %[x1]!, {s17}\n\t"
        "vldmia %[x2]!, {s18}\n\t"
        "vldmia %[x3]!, {s19}\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s16"), MCUD_S20, MCUD_S28)
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s17"), MCUD_S20, MCUD_S28)
        MCUD_MAC4_F32(MCUD_S8, MCUD_SAME("s18"), MCUD_S20, MCUD_S28)
        MCUD_MAC4_F32(MCUD_S12, MCUD_SAME("s19"), MCUD_S20, MCUD_S28)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s15}\n\t"
        : [x] "+r"(x), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+r"(w), [left] "+r"(values), [t0] "=&r"(t0),
          [t1] "=&r"(t1)
        : [sums] "r"(sums), [scale] "r"(scale)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* x[values], w[values][4]: 21 instructions for 4 products */
static inline void mcud_add_1x4_s8w(const float *x, const int8_t *w, const float scale[4], int32_t values,
                                    float sums[4])
{
    int32_t t0;
    int32_t t1;
    int32_t t2;
    int32_t t3;
    if (values <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[sums], {s0-s3}\n\t"
        "vldmia %[scale], {s24-s27}\n"
        "1:\n\t"
        MCUD_WIDEN_FOUR_S8W("w", "s24", "s25", "s26", "s27")
        "vldmia %[x]!, {s16}\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s16"), MCUD_S20, MCUD_S20)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s3}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [left] "+r"(values), [t0] "=&r"(t0), [t1] "=&r"(t1),
          [t2] "=&r"(t2), [t3] "=&r"(t3)
        : [sums] "r"(sums), [scale] "r"(scale)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

/* x[values], w[2][values][4]: 39 instructions for 8 products */
static inline void mcud_add_1x8_s8w(const float *x, const int8_t *w, const float scale[8], int32_t values,
                                    float sums[8])
{
    const int8_t *next = w + 4 * values;
    int32_t t0;
    int32_t t1;
    int32_t t2;
    int32_t t3;
    if (values <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[sums], {s0-s7}\n\t"
        "vldmia %[scale], {s24-s31}\n"
        "1:\n\t"
        MCUD_WIDEN_FOUR_S8W("w", "s24", "s25", "s26", "s27")
        "vldmia %[x]!, {s16}\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s16"), MCUD_S20, MCUD_S20)
        MCUD_WIDEN_FOUR_S8W("next", "s28", "s29", "s30", "s31")
        MCUD_MAC4_F32(MCUD_S4, MCUD_SAME("s16"), MCUD_S20, MCUD_S20)
        "subs %[left], %[left], #1\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s7}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [next] "+r"(next), [left] "+r"(values), [t0] "=&r"(t0), [t1] "=&r"(t1),
          [t2] "=&r"(t2), [t3] "=&r"(t3)
        : [sums] "r"(sums), [scale] "r"(scale)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#endif
