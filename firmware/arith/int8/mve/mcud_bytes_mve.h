/* mcud_bytes.h by the M-profile Vector Extension. */
#ifndef MCUD_BYTES_MVE_H
#define MCUD_BYTES_MVE_H

#include <arm_mve.h>

/* y[count] = table[x[count] + 128] */
static inline void mcud_look_up(int8_t *y, const int8_t *x, int32_t count, const int8_t *table)
{
    const uint8x16_t middle = vdupq_n_u8(128);
    uint8x16_t v;
    int8x16_t found;
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vldrb.8 %q[v], [%[x]], #16\n\t"
                     "veor %q[v], %q[v], %q[middle]\n\t"
                     "vldrb.u8 %q[found], [%[table], %q[v]]\n\t"
                     "vstrb.8 %q[found], [%[y]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [x] "+l"(x), [y] "+l"(y), [v] "=&w"(v), [found] "=&w"(found)
                     : [count] "r"(count), [table] "r"(table), [middle] "w"(middle)
                     : "lr", "memory");
}

/* y[count] = a[count] * b[count]; y may be a or b. */
static inline void mcud_multiply_bytes(const int8_t *a, const int8_t *b, int8_t *y, int32_t count,
                                       const mcud_byte_product *product)
{
    const int32x4_t multiplier = vdupq_n_s32(product->multiplier);
    int32x4_t v;
    int32x4_t w;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vldrb.s32 %q[v], [%[a]], #4\n\t"
                     "vldrb.s32 %q[w], [%[b]], #4\n\t"
                     "vadd.i32 %q[v], %q[v], %[minus_a]\n\t"
                     "vadd.i32 %q[w], %q[w], %[minus_b]\n\t"
                     "vmul.i32 %q[v], %q[v], %q[w]\n\t"
                     "vshl.s32 %q[v], %[left]\n\t"
                     "vrmulh.s32 %q[v], %q[v], %q[multiplier]\n\t"
                     "vadd.i32 %q[v], %q[v], %[zero]\n\t"
                     "vqmovnb.s32 %q[v], %q[v]\n\t"
                     "vqmovnb.s16 %q[v], %q[v]\n\t"
                     "vstrb.32 %q[v], [%[y]], #4\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [a] "+l"(a), [b] "+l"(b), [y] "+l"(y), [v] "=&w"(v), [w] "=&w"(w)
                     : [count] "r"(count), [minus_a] "r"(-product->a_zero_point),
                       [minus_b] "r"(-product->b_zero_point), [left] "r"(product->left),
                       [zero] "r"(product->zero_point), [multiplier] "w"(multiplier)
                     : "lr", "memory");
}

/* The largest values of all channels -> y[channels] */
static inline void mcud_max_window(const mcud_byte_window *window, int32_t channels, int8_t *y)
{
    for (int32_t c = 0; c < channels; c += 16) {
        const mve_pred16_t there = vctp8q((uint32_t)(channels - c));
        int8x16_t most = vdupq_n_s8(INT8_MIN);
        for (int32_t r = 0; r < window->rows; r++) {
            const void *row = window->memory + window->offsets[r];
            const int8_t *x = (const int8_t *)row + c;
            for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
                most = vmaxq_s8(most, vldrbq_z_s8(x, there));
            }
        }
        vstrbq_p_s8(y + c, most, there);
    }
}

/* The sums of up to eight channels from `channel` on. */
static inline void mcud_sum_window(const mcud_byte_window *window, int32_t channel, int32_t channels,
                                   int32_t sums[8])
{
    if (channels < 8) {
        for (int32_t c = 0; c < channels; c++) {
            sums[c] = mcud_sum_channel(window, channel + c);
        }
        return;
    }
    int32x4_t a = vdupq_n_s32(0);
    int32x4_t b = vdupq_n_s32(0);
    for (int32_t r = 0; r < window->rows; r++) {
        const void *row = window->memory + window->offsets[r];
        const int8_t *x = (const int8_t *)row + channel;
        for (int32_t s = window->cols; s > 0; s--, x += window->pitch) {
            a = vaddq_s32(a, vldrbq_s32(x));
            b = vaddq_s32(b, vldrbq_s32(x + 4));
        }
    }
    vst1q_s32(sums, a);
    vst1q_s32(sums + 4, b);
}

#endif
