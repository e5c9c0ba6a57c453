/* Computes pixels of resize_linear_s8_mve by the M-profile Vector Extension, or in portable C with the same bits. */
#ifndef MCUD_LINEAR_VECTOR_H
#define MCUD_LINEAR_VECTOR_H

#include "mcud_linear_s8.h"

/* The channels of the four neighbours of an output pixel, and its position in the tables. */
typedef struct {
    const int8_t *near;
    const int8_t *right;
    const int8_t *below;
    const int8_t *far;
    int32_t row;
    int32_t col;
    int32_t col_weight; /* of `right` and `far`, with 22 fraction bits */
} mcud_pixel_s8;

/* Computes one channel of a pixel, -128 to 127. */
static inline int8_t mcud_linear_channel(const mcud_resize_linear_s8_params *params, const mcud_pixel_s8 *at,
                                         int32_t c)
{
    const int32_t zero_point = params->input_zero_point;
    const mcud_square_s8 square = {
        at->near[c] - zero_point,
        at->right[c] - zero_point,
        at->below[c] - zero_point,
        at->far[c] - zero_point,
        at->row,
        at->col,
        at->col_weight,
    };
    return (int8_t)mcud_linear_value(params, &square);
}

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)

#include <arm_mve.h>

/* Computes `count` channels of a pixel from channel `first` on, 1 to 32 of them; 44 <= params->shift <= 54. Returns a
 * bit for each channel that may be on either side of a tie, the lowest ones for the last four channels.
 *
 * The sum of the upper halves of the products is less than 3 units too low. A channel is certain if adding 3 units does
 * not bring it nearer to a tie than the required distance.
 *
 * Not inlined: at -O1, GCC finds no registers for it beside the caller's values. */
static __attribute__((noinline)) uint32_t mcud_linear_run(const mcud_resize_linear_s8_params *params,
                                                          const mcud_pixel_s8 *at, int32_t first, int32_t count,
                                                          int8_t *out)
{
    const int32_t shift = params->shift - 32;
    const int32_t near_tie = (int32_t)1 << (shift - 12);
    const int32_t row_weight = params->row_weights[at->row];
    const int32_t next_row_weight = params->next_row_weights[at->row];
    const int64_t input_zero = params->input_zero_point * ((int64_t)row_weight + next_row_weight);
    const int32_t output_zero = params->output_zero_point * ((int32_t)1 << shift);
    const int32_t lower = (int32_t)(-input_zero >> 10) + output_zero + ((int32_t)1 << (shift - 1)) - near_tie;
    const uint32x4_t bits = vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(vidupq_n_u32(0, 1)));
    const int8_t *near = at->near + first;
    const int8_t *right = at->right + first;
    const int8_t *below = at->below + first;
    const int8_t *far = at->far + first;
    int8_t *y = out + first;
    uint32_t ties = (uint32_t)count; /* holds the count first: there are no more registers */
    int32x4_t top;
    int32x4_t bottom;
    int32x4_t x;
    __asm__ volatile("dlstp.32 lr, %[ties]\n\t"
                     "mov %[ties], #0\n"
                     "1:\n\t"
                     "vldrb.s32 %q[top], [%[near]], #4\n\t"
                     "vmul.i32 %q[top], %q[top], %[col_rest]\n\t"
                     "vldrb.s32 %q[x], [%[right]], #4\n\t"
                     "vmla.s32 %q[top], %q[x], %[col_weight]\n\t"
                     "vldrb.s32 %q[bottom], [%[below]], #4\n\t"
                     "vmul.i32 %q[bottom], %q[bottom], %[col_rest]\n\t"
                     "vldrb.s32 %q[x], [%[far]], #4\n\t"
                     "vmla.s32 %q[bottom], %q[x], %[col_weight]\n\t"
                     "vmulh.s32 %q[top], %q[top], %q[row_weight]\n\t"
                     "vmulh.s32 %q[bottom], %q[bottom], %q[next_row_weight]\n\t"
                     "vadd.i32 %q[top], %q[top], %[lower]\n\t"
                     "vadd.i32 %q[top], %q[top], %q[bottom]\n\t"
                     "vadd.i32 %q[bottom], %q[top], %q[between]\n\t"
                     "vshl.s32 %q[top], %q[top], %q[down]\n\t"
                     "vshl.s32 %q[bottom], %q[bottom], %q[down]\n\t"
                     "lsl %[ties], %[ties], #4\n\t"
                     "vsub.i32 %q[bottom], %q[bottom], %q[top]\n\t" /* 1 if uncertain, else 0 */
                     "vmladava.u32 %[ties], %q[bottom], %q[bits]\n\t"
                     "vqmovnb.s32 %q[top], %q[top]\n\t"
                     "vqmovnb.s16 %q[top], %q[top]\n\t"
                     "vstrb.32 %q[top], [%[y]], #4\n\t"
                     "letp lr, 1b"
                     : [near] "+l"(near), [right] "+l"(right), [below] "+l"(below), [far] "+l"(far), [y] "+l"(y),
                       [ties] "+Te"(ties), [top] "=&w"(top), [bottom] "=&w"(bottom), [x] "=&w"(x)
                     : [row_weight] "w"(vdupq_n_s32(row_weight)), [bits] "w"(bits), [down] "w"(vdupq_n_s32(-shift)),
                       [next_row_weight] "w"(vdupq_n_s32(next_row_weight)), [col_weight] "r"(at->col_weight),
                       [col_rest] "r"(((int32_t)1 << 22) - at->col_weight), [lower] "r"(lower),
                       [between] "w"(vdupq_n_s32(2 * near_tie + 3))
                     : "lr", "memory");
    return ties;
}

/* All channels of a pixel; 44 <= params->shift <= 54. */
static inline void mcud_linear_pixel(const mcud_resize_linear_s8_params *params, const mcud_pixel_s8 *at, int8_t *out)
{
    const int32_t channels = params->channels;
    for (int32_t first = 0; first < channels; first += 32) {
        const int32_t count = channels - first < 32 ? channels - first : 32;
        const int32_t last_four = first + (count - 1) / 4 * 4;
        for (uint32_t ties = mcud_linear_run(params, at, first, count, out); ties != 0; ties &= ties - 1) {
            const int32_t bit = __builtin_ctz(ties);
            const int32_t c = last_four - (bit & ~3) + (bit & 3);
            out[c] = mcud_linear_channel(params, at, c);
        }
    }
}

#else

/* All channels of a pixel. */
static inline void mcud_linear_pixel(const mcud_resize_linear_s8_params *params, const mcud_pixel_s8 *at, int8_t *out)
{
    for (int32_t c = 0; c < params->channels; c++) {
        out[c] = mcud_linear_channel(params, at, c);
    }
}

#endif

#endif
