/* mcud_blocks_f32.h for Arm cores whose FPU has VFMA: Cortex-M4F, M7, M33 and up. */
#ifndef MCUD_BLOCKS_F32_VFP_H
#define MCUD_BLOCKS_F32_VFP_H

#include "mcud_mac_f32_vfp.h"

/* 32 instructions for 8 products, 40 without fused multiplication */
static inline void mcud_add_pairs_1x4_s4(const float *x, const uint32_t *w, int32_t values, float sums[4])
{
    int32_t t0;
    int32_t t1;
    int32_t t2;
    int32_t t3;
    int32_t word;
    if (values <= 0) {
        return;
    }
    __asm__ volatile(
        "vldmia %[sums], {s0-s3}\n"
        "1:\n\t"
        "ldr %[word], [%[w]], #4\n\t"
        "vldmia %[x]!, {s16-s17}\n\t"
        "sbfx %[t0], %[word], #0, #4\n\t"
        "sbfx %[t1], %[word], #4, #4\n\t"
        "sbfx %[t2], %[word], #8, #4\n\t"
        "sbfx %[t3], %[word], #12, #4\n\t"
        "vmov s20, s21, %[t0], %[t1]\n\t"
        "vmov s22, s23, %[t2], %[t3]\n\t"
        "sbfx %[t0], %[word], #16, #4\n\t"
        "sbfx %[t1], %[word], #20, #4\n\t"
        "sbfx %[t2], %[word], #24, #4\n\t"
        "asr %[t3], %[word], #28\n\t"
        "vmov s24, s25, %[t0], %[t1]\n\t"
        "vmov s26, s27, %[t2], %[t3]\n\t"
        "vcvt.f32.s32 s20, s20\n\t"
        "vcvt.f32.s32 s21, s21\n\t"
        "vcvt.f32.s32 s22, s22\n\t"
        "vcvt.f32.s32 s23, s23\n\t"
        "vcvt.f32.s32 s24, s24\n\t"
        "vcvt.f32.s32 s25, s25\n\t"
        "vcvt.f32.s32 s26, s26\n\t"
        "vcvt.f32.s32 s27, s27\n\t"
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s16"), MCUD_S20, MCUD_S20)
        MCUD_MAC4_F32(MCUD_S0, MCUD_SAME("s17"), MCUD_S24, MCUD_S24)
        "subs %[left], %[left], #2\n\t"
        "bne 1b\n\t"
        "vstmia %[sums], {s0-s3}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [left] "+r"(values), [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2),
          [t3] "=&r"(t3), [word] "=&r"(word)
        : [sums] "r"(sums)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#endif
