/* Weighted means of four neighbours, added in the order ((near + right) + below) + far, without fused products. */
#ifndef MCUD_LINEAR_F32_H
#define MCUD_LINEAR_F32_H

#include <stdint.h>

/* The channels of four neighbours, and the weight of each. */
typedef struct {
    const float *near;
    const float *right;
    const float *below;
    const float *far;
    float near_weight;
    float right_weight;
    float below_weight;
    float far_weight;
} mcud_square_f32;

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && defined(__OPTIMIZE__)

#include <arm_mve.h>

/* The mean of every channel; channels > 0 */
static inline void mcud_linear_pixel_f32(const mcud_square_f32 *at, int32_t channels, float *out)
{
    const float *near = at->near;
    const float *right = at->right;
    const float *below = at->below;
    const float *far = at->far;
    float32x4_t sum;
    float32x4_t v;
    __asm__ volatile("dlstp.32 lr, %[channels]\n"
                     "1:\n\t"
                     "vldrw.32 %q[sum], [%[near]], #16\n\t"
                     "vldrw.32 %q[v], [%[right]], #16\n\t"
                     "vmul.f32 %q[sum], %q[sum], %[near_weight]\n\t"
                     "vmul.f32 %q[v], %q[v], %[right_weight]\n\t"
                     "vadd.f32 %q[sum], %q[sum], %q[v]\n\t"
                     "vldrw.32 %q[v], [%[below]], #16\n\t"
                     "vmul.f32 %q[v], %q[v], %[below_weight]\n\t"
                     "vadd.f32 %q[sum], %q[sum], %q[v]\n\t"
                     "vldrw.32 %q[v], [%[far]], #16\n\t"
                     "vmul.f32 %q[v], %q[v], %[far_weight]\n\t"
                     "vadd.f32 %q[sum], %q[sum], %q[v]\n\t"
                     "vstrw.32 %q[sum], [%[out]], #16\n\t"
                     "letp lr, 1b"
                     : [near] "+r"(near), [right] "+r"(right), [below] "+r"(below), [far] "+r"(far),
                       [out] "+r"(out), [sum] "=&w"(sum), [v] "=&w"(v)
                     : [channels] "r"(channels), [near_weight] "r"(at->near_weight),
                       [right_weight] "r"(at->right_weight), [below_weight] "r"(at->below_weight),
                       [far_weight] "r"(at->far_weight)
                     : "lr", "memory");
}

#else

/* The mean of every channel; channels > 0 */
static inline void mcud_linear_pixel_f32(const mcud_square_f32 *at, int32_t channels, float *out)
{
    const mcud_square_f32 from = *at; /* a copy, since the compiler must expect a store to out to change *at */
    for (int32_t c = 0; c < channels; c++) {
        out[c] = from.near_weight * from.near[c] + from.right_weight * from.right[c] +
                 from.below_weight * from.below[c] + from.far_weight * from.far[c];
    }
}

#endif

#endif
