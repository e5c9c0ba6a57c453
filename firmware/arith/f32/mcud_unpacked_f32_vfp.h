/* mcud_unpacked_f32.h for Arm cores whose FPU has VFMA: Cortex-M4F, M7, M33 and up. */
#ifndef MCUD_UNPACKED_F32_VFP_H
#define MCUD_UNPACKED_F32_VFP_H

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
        "vldmia %[x1]!, {s12-s15}\n\t"
        "vldmia %[w]!, {s16-s19}\n\t"
        "vldmia %[w1]!, {s20-s23}\n\t"
        "vldmia %[w2]!, {s24-s27}\n\t"
        "vldmia %[w3]!, {s28-s31}\n\t"
        "vfma.f32 s0, s8, s16\n\t" "vfma.f32 s1, s8, s20\n\t"
        "vfma.f32 s2, s8, s24\n\t" "vfma.f32 s3, s8, s28\n\t"
        "vfma.f32 s4, s12, s16\n\t" "vfma.f32 s5, s12, s20\n\t"
        "vfma.f32 s6, s12, s24\n\t" "vfma.f32 s7, s12, s28\n\t"
        "vfma.f32 s0, s9, s17\n\t" "vfma.f32 s1, s9, s21\n\t"
        "vfma.f32 s2, s9, s25\n\t" "vfma.f32 s3, s9, s29\n\t"
        "vfma.f32 s4, s13, s17\n\t" "vfma.f32 s5, s13, s21\n\t"
        "vfma.f32 s6, s13, s25\n\t" "vfma.f32 s7, s13, s29\n\t"
        "vfma.f32 s0, s10, s18\n\t" "vfma.f32 s1, s10, s22\n\t"
        "vfma.f32 s2, s10, s26\n\t" "vfma.f32 s3, s10, s30\n\t"
        "vfma.f32 s4, s14, s18\n\t" "vfma.f32 s5, s14, s22\n\t"
        "vfma.f32 s6, s14, s26\n\t" "vfma.f32 s7, s14, s30\n\t"
        "vfma.f32 s0, s11, s19\n\t" "vfma.f32 s1, s11, s23\n\t"
        "vfma.f32 s2, s11, s27\n\t" "vfma.f32 s3, s11, s31\n\t"
        "vfma.f32 s4, s15, s19\n\t" "vfma.f32 s5, s15, s23\n\t"
        "vfma.f32 s6, s15, s27\n\t" "vfma.f32 s7, s15, s31\n\t"
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
        "vfma.f32 s0, s8, s16\n\t" "vfma.f32 s1, s8, s20\n\t"
        "vfma.f32 s2, s8, s24\n\t" "vfma.f32 s3, s8, s28\n\t"
        "vfma.f32 s4, s12, s16\n\t" "vfma.f32 s5, s12, s20\n\t"
        "vfma.f32 s6, s12, s24\n\t" "vfma.f32 s7, s12, s28\n\t"
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
        "vfma.f32 s0, s4, s16\n\t" "vfma.f32 s1, s4, s20\n\t"
        "vfma.f32 s2, s4, s24\n\t" "vfma.f32 s3, s4, s28\n\t"
        "vfma.f32 s0, s5, s17\n\t" "vfma.f32 s1, s5, s21\n\t"
        "vfma.f32 s2, s5, s25\n\t" "vfma.f32 s3, s5, s29\n\t"
        "vfma.f32 s0, s6, s18\n\t" "vfma.f32 s1, s6, s22\n\t"
        "vfma.f32 s2, s6, s26\n\t" "vfma.f32 s3, s6, s30\n\t"
        "vfma.f32 s0, s7, s19\n\t" "vfma.f32 s1, s7, s23\n\t"
        "vfma.f32 s2, s7, s27\n\t" "vfma.f32 s3, s7, s31\n\t"
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
        "vfma.f32 s0, s4, s16\n\t"
        "vfma.f32 s1, s4, s20\n\t"
        "vfma.f32 s2, s4, s24\n\t"
        "vfma.f32 s3, s4, s28\n\t"
        "subs %[left], %[left], #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        "vstmia %[sums], {s0-s3}\n\t"
        : [x] "+r"(x), [w] "+r"(w), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [left] "+r"(values)
        : [sums] "r"(sums)
        : MCUD_ALL_FLOATS, "cc", "memory");
}

#endif
