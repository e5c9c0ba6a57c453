/* mcud_simd_f32.h for Arm cores whose vectors hold floats: Cortex-M55. A vector is four channels, and a pixel's values
 * are scalars in general registers.
 *
 * Vectors flush subnormal numbers to zero, which no other core does: their results may differ in these numbers. */
#ifndef MCUD_SIMD_F32_MVE_H
#define MCUD_SIMD_F32_MVE_H

#include <arm_mve.h>

/* Lanes that are less (lt) or greater (gt) than the bound become the bound; a NaN is neither. GCC would move the
 * predicates of intrinsics to and fro; Clang has no name for the register that assembler changes. */
#if defined(__clang__)
#define MCUD_BOUND_F32(relation, v, bound) v = vdupq_m_n_f32(v, bound, vcmp##relation##q_n_f32(v, bound))
#else
#define MCUD_BOUND_F32(relation, v, bound)                                                                   \
    __asm__("vpt.f32 " #relation ", %q0, %1\n\t"                                                             \
            "vdupt.32 %q0, %1"                                                                               \
            : "+w"(v)                                                                                        \
            : "r"(bound)                                                                                     \
            : "p0")
#endif

/* Weights of four values and four channels. */
#define MCUD_FOUR_WEIGHTS_F32                                                                                \
    "vldrw.32 %q[w0], [%[w]], #16\n\t"                                                                       \
    "vldrw.32 %q[w1], [%[w]], #16\n\t"                                                                       \
    "vldrw.32 %q[w2], [%[w]], #16\n\t"                                                                       \
    "vldrw.32 %q[w3], [%[w]], #16\n\t"

/* Four values of a pixel. */
#define MCUD_FOUR_VALUES_F32(x, sums)                                                                        \
    "ldm %[" x "]!, {r8, r10, r11, r12}\n\t"                                                                 \
    "vfma.f32 %q[" sums "], %q[w0], r8\n\t"                                                                  \
    "vfma.f32 %q[" sums "], %q[w1], r10\n\t"                                                                 \
    "vfma.f32 %q[" sums "], %q[w2], r11\n\t"                                                                 \
    "vfma.f32 %q[" sums "], %q[w3], r12\n\t"

/* One value of a pixel. */
#define MCUD_VALUE_F32(x, sums)                                                                              \
    "ldr r8, [%[" x "]], #4\n\t"                                                                             \
    "vfma.f32 %q[" sums "], %q[w0], r8\n\t"

/* x[values], x[step + values], ..., w[values][4]: 25 instructions for 64 products */
static inline void mcud_add_4x4_f32(const float *x, int32_t step, const float *w, int32_t values,
                                    float sums[16])
{
    const float *x1 = x + step;
    const float *x2 = x1 + step;
    const float *x3 = x2 + step;
    float32x4_t a = vld1q_f32(sums);
    float32x4_t b = vld1q_f32(sums + 4);
    float32x4_t c = vld1q_f32(sums + 8);
    float32x4_t d = vld1q_f32(sums + 12);
    float32x4_t w0;
    float32x4_t w1;
    float32x4_t w2;
    float32x4_t w3;
    __asm__ volatile(
        "wls lr, %[fours], 2f\n"
        "1:\n\t"
        MCUD_FOUR_WEIGHTS_F32
        MCUD_FOUR_VALUES_F32("x", "a")
        MCUD_FOUR_VALUES_F32("x1", "b")
        MCUD_FOUR_VALUES_F32("x2", "c")
        MCUD_FOUR_VALUES_F32("x3", "d")
        "le lr, 1b\n"
        "2:\n\t"
        "and r10, %[values], #3\n\t"
        "wls lr, r10, 4f\n"
        "3:\n\t"
        "vldrw.32 %q[w0], [%[w]], #16\n\t"
        MCUD_VALUE_F32("x", "a")
        MCUD_VALUE_F32("x1", "b")
        MCUD_VALUE_F32("x2", "c")
        MCUD_VALUE_F32("x3", "d")
        "le lr, 3b\n"
        "4:"
        : [x] "+r"(x), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+r"(w), [a] "+w"(a), [b] "+w"(b),
          [c] "+w"(c), [d] "+w"(d), [w0] "=&w"(w0), [w1] "=&w"(w1), [w2] "=&w"(w2), [w3] "=&w"(w3)
        : [fours] "r"(values / 4), [values] "r"(values)
        : "r8", "r10", "r11", "r12", "lr", "memory");
    vst1q_f32(sums, a);
    vst1q_f32(sums + 4, b);
    vst1q_f32(sums + 8, c);
    vst1q_f32(sums + 12, d);
}

/* x[values], w[values][4] */
static inline void mcud_add_1x4_f32(const float *x, const float *w, int32_t values, float sums[4])
{
    float32x4_t a = vld1q_f32(sums);
    float32x4_t w0;
    float32x4_t w1;
    float32x4_t w2;
    float32x4_t w3;
    __asm__ volatile(
        "wls lr, %[fours], 2f\n"
        "1:\n\t"
        MCUD_FOUR_WEIGHTS_F32
        MCUD_FOUR_VALUES_F32("x", "a")
        "le lr, 1b\n"
        "2:\n\t"
        "and r10, %[values], #3\n\t"
        "wls lr, r10, 4f\n"
        "3:\n\t"
        "vldrw.32 %q[w0], [%[w]], #16\n\t"
        MCUD_VALUE_F32("x", "a")
        "le lr, 3b\n"
        "4:"
        : [x] "+r"(x), [w] "+r"(w), [a] "+w"(a), [w0] "=&w"(w0), [w1] "=&w"(w1), [w2] "=&w"(w2), [w3] "=&w"(w3)
        : [fours] "r"(values / 4), [values] "r"(values)
        : "r8", "r10", "r11", "r12", "lr", "memory");
    vst1q_f32(sums, a);
}

/* x[values], w[values][4] */
static inline void mcud_raised_1x4_f32(const float *x, const float *w, int32_t values, const mcud_base_f32 *base,
                                       float y[4])
{
    float sums[4];
    vst1q_f32(sums, vld1q_f32(base->bias));
    mcud_add_1x4_f32(x, w, values, sums);
    float32x4_t a = vld1q_f32(sums);
    MCUD_BOUND_F32(lt, a, base->low);
    vst1q_f32(y, a);
}

/* x[values], w[2][values][4]: 18 instructions for 32 products */
static inline void mcud_raised_1x8_f32(const float *x, const float *w, int32_t values, const mcud_base_f32 *base,
                                       float y[8])
{
    float32x4_t a = vld1q_f32(base->bias);
    float32x4_t b = vld1q_f32(base->bias + 4);
    const float *next = w + 4 * values;
    float32x4_t w0;
    float32x4_t w1;
    float32x4_t w2;
    float32x4_t w3;
    __asm__ volatile(
        "wls lr, %[fours], 2f\n"
        "1:\n\t"
        MCUD_FOUR_WEIGHTS_F32
        MCUD_FOUR_VALUES_F32("x", "a")
        "vldrw.32 %q[w0], [%[next]], #16\n\t"
        "vldrw.32 %q[w1], [%[next]], #16\n\t"
        "vldrw.32 %q[w2], [%[next]], #16\n\t"
        "vldrw.32 %q[w3], [%[next]], #16\n\t"
        "vfma.f32 %q[b], %q[w0], r8\n\t"
        "vfma.f32 %q[b], %q[w1], r10\n\t"
        "vfma.f32 %q[b], %q[w2], r11\n\t"
        "vfma.f32 %q[b], %q[w3], r12\n\t"
        "le lr, 1b\n"
        "2:\n\t"
        "and r10, %[values], #3\n\t"
        "wls lr, r10, 4f\n"
        "3:\n\t"
        "vldrw.32 %q[w0], [%[w]], #16\n\t"
        MCUD_VALUE_F32("x", "a")
        "vldrw.32 %q[w1], [%[next]], #16\n\t"
        "vfma.f32 %q[b], %q[w1], r8\n\t"
        "le lr, 3b\n"
        "4:"
        : [x] "+r"(x), [w] "+r"(w), [next] "+r"(next), [a] "+w"(a), [b] "+w"(b), [w0] "=&w"(w0), [w1] "=&w"(w1),
          [w2] "=&w"(w2), [w3] "=&w"(w3)
        : [fours] "r"(values / 4), [values] "r"(values)
        : "r8", "r10", "r11", "r12", "lr", "memory");
    MCUD_BOUND_F32(lt, a, base->low);
    MCUD_BOUND_F32(lt, b, base->low);
    vst1q_f32(y, a);
    vst1q_f32(y + 4, b);
}

/* Channels [channel, channel + 8) of a window; w are the weights of its first tap and of these channels. */
static inline void mcud_add_window_8_f32(const mcud_window_taps_f32 *taps, int32_t channel, const float *w,
                                         float sums[8])
{
    if (taps->rows <= 0 || taps->count <= 0) {
        return;
    }
    float32x4_t a = vld1q_f32(sums);
    float32x4_t b = vld1q_f32(sums + 4);
    float32x4_t x0;
    float32x4_t x1;
    float32x4_t w0;
    float32x4_t w1;
    const uint32_t *offset = taps->offsets;
    const uint8_t *x;
    __asm__ volatile(
        "1:\n\t"
        "ldr %[x], [%[offset]], #4\n\t"
        "dls lr, %[count]\n\t"
        "add %[x], %[x], %[memory]\n"
        "2:\n\t"
        "vldrw.32 %q[x0], [%[x]]\n\t"
        "vldrw.32 %q[x1], [%[x], #16]\n\t"
        "vldrw.32 %q[w0], [%[w]]\n\t"
        "vldrw.32 %q[w1], [%[w], #16]\n\t"
        "add %[x], %[x], %[x_pitch], lsl #2\n\t"
        "add %[w], %[w], %[w_pitch], lsl #2\n\t"
        "vfma.f32 %q[a], %q[x0], %q[w0]\n\t"
        "vfma.f32 %q[b], %q[x1], %q[w1]\n\t"
        "le lr, 2b\n\t"
        "add %[w], %[w], %[w_gap], lsl #2\n\t"
        "cmp %[offset], %[end]\n\t"
        "bne 1b"
        : [x] "=&r"(x), [w] "+r"(w), [offset] "+r"(offset), [a] "+w"(a), [b] "+w"(b), [x0] "=&w"(x0),
          [x1] "=&w"(x1), [w0] "=&w"(w0), [w1] "=&w"(w1)
        : [memory] "r"(taps->memory + 4 * channel), [count] "r"(taps->count), [x_pitch] "r"(taps->x_pitch),
          [w_pitch] "r"(taps->w_pitch), [w_gap] "r"(taps->w_row_pitch - taps->count * taps->w_pitch),
          [end] "r"(taps->offsets + taps->rows)
        : "lr", "cc", "memory");
    vst1q_f32(sums, a);
    vst1q_f32(sums + 4, b);
}

/* x[values], w[values][8], whose lines lie `pitch` values apart */
static inline void mcud_add_lines_8_f32(const float *x, const float *w, int32_t pitch, int32_t values, float sums[8])
{
    float32x4_t a = vld1q_f32(sums);
    float32x4_t b = vld1q_f32(sums + 4);
    for (int32_t i = 0; i < values; i++, w += pitch) {
        a = vfmaq_n_f32(a, vld1q_f32(w), x[i]);
        b = vfmaq_n_f32(b, vld1q_f32(w + 4), x[i]);
    }
    vst1q_f32(sums, a);
    vst1q_f32(sums + 4, b);
}

/* See mcud_clamp_f32.h. */
static inline void mcud_clamp_4_f32(const float sums[4], float low, float high, float *y)
{
    float32x4_t v = vld1q_f32(sums);
    MCUD_BOUND_F32(lt, v, low);
    MCUD_BOUND_F32(gt, v, high);
    vst1q_f32(y, v);
}

#endif
