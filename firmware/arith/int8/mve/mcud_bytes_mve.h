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
    const uint32_t *const end = window->offsets + window->rows;
    const int32_t pitch = window->pitch;
    const uint8_t *memory = window->memory;
    for (; channels >= 32; channels -= 32, memory += 32, y += 32) {
        int8x16_t low = vdupq_n_s8(INT8_MIN);
        int8x16_t high = low;
        int8x16_t v;
        for (const uint32_t *row = window->offsets; row < end; row++) {
            const uint8_t *x = memory + *row;
            __asm__("wls lr, %[cols], 2f\n"
                    "1:\n\t"
                    "vldrb.8 %q[v], [%[x]]\n\t"
                    "vmax.s8 %q[low], %q[low], %q[v]\n\t"
                    "vldrb.8 %q[v], [%[x], #16]\n\t"
                    "vmax.s8 %q[high], %q[high], %q[v]\n\t"
                    "add %[x], %[x], %[pitch]\n\t"
                    "le lr, 1b\n"
                    "2:"
                    : [x] "+r"(x), [low] "+w"(low), [high] "+w"(high), [v] "=&w"(v)
                    : [cols] "r"(window->cols), [pitch] "r"(pitch)
                    : "lr", "memory");
        }
        vstrbq_s8(y, low);
        vstrbq_s8(y + 16, high);
    }
    for (; channels > 0; channels -= 16, memory += 16, y += 16) {
        const mve_pred16_t there = vctp8q((uint32_t)channels);
        int8x16_t most = vdupq_n_s8(INT8_MIN);
        for (const uint32_t *row = window->offsets; row < end; row++) {
            const int8_t *x = (const int8_t *)(const void *)(memory + *row);
            for (int32_t s = window->cols; s > 0; s--, x += pitch) {
                most = vmaxq_s8(most, vldrbq_z_s8(x, there));
            }
        }
        vstrbq_p_s8(y, most, there);
    }
}

/* x[pixels][channels] -> y[pixels][channels]; y may be x. The sum of a channel is shifted so that its result is the upper
 * byte, saturated. */
static inline void mcud_scale_pixels(const mcud_channel_scales *by, const int8_t *x, int8_t *y, int32_t pixels)
{
    const int32_t channels = by->channels;
    const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 4), 3); /* of the same word of four records */
    const int32_t *record = by->records;
    for (int32_t c = 0; c < channels; c += 4, record += 12) {
        const mve_pred16_t there = vctp32q((uint32_t)(channels - c));
        const int32x4_t m = vldrwq_gather_offset_z_s32(record, places, there);
        const int32x4_t b = vldrwq_gather_offset_z_s32(record + 1, places, there);
        const int32x4_t left = vsubq_s32(vdupq_n_s32(24), vldrwq_gather_offset_z_s32(record + 2, places, there));
        const int8_t *from = x + c;
        int8_t *to = y + c;
        if (channels - c >= 4) {
            for (int32_t p = pixels; p > 0; p--, from += channels, to += channels) {
                const int32x4_t sum = vaddq_s32(vmulq_s32(vldrbq_s32(from), m), b);
                vstrbq_s32(to, vshrq_n_s32(vqshlq_s32(sum, left), 24));
            }
        } else {
            for (int32_t p = pixels; p > 0; p--, from += channels, to += channels) {
                const int32x4_t sum = vaddq_s32(vmulq_s32(vldrbq_z_s32(from, there), m), b);
                vstrbq_p_s32(to, vshrq_n_s32(vqshlq_s32(sum, left), 24), there);
            }
        }
    }
    mcud_clip_s8(y, pixels * channels, by->low, by->high);
}

enum { MCUD_SUMS = 16, MCUD_SHORT_TAPS = 256 };

/* Sums of 16 bits, widened. */
static inline void mcud_store_sums(int32_t sums[8], int16x8_t of)
{
    const int32x4x2_t wide = {{vmovlbq_s16(of), vmovltq_s16(of)}};
    vst2q_s32(sums, wide);
}

/* See mcud_sum_window: those of up to MCUD_SHORT_TAPS taps, which 16 bits hold. */
MCUD_NOINLINE void mcud_sum_short(const mcud_byte_window *window, int32_t channel, int32_t channels,
                                  int32_t sums[MCUD_SUMS])
{
    const uint32_t *const end = window->offsets + window->rows;
    const int32_t pitch = window->pitch;
    const int32_t cols = window->cols;
    const uint8_t *memory = window->memory + channel;
    if (channels >= MCUD_SUMS) {
        int16x8_t low = vdupq_n_s16(0);
        int16x8_t high = low;
        int16x8_t v;
        for (const uint32_t *row = window->offsets; row < end; row++) {
            const uint8_t *x = memory + *row;
            __asm__("wls lr, %[cols], 2f\n"
                    "1:\n\t"
                    "vldrb.s16 %q[v], [%[x]]\n\t"
                    "vadd.i16 %q[low], %q[low], %q[v]\n\t"
                    "vldrb.s16 %q[v], [%[x], #8]\n\t"
                    "vadd.i16 %q[high], %q[high], %q[v]\n\t"
                    "add %[x], %[x], %[pitch]\n\t"
                    "le lr, 1b\n"
                    "2:"
                    : [x] "+l"(x), [low] "+w"(low), [high] "+w"(high), [v] "=&w"(v)
                    : [cols] "r"(cols), [pitch] "r"(pitch)
                    : "lr", "memory");
        }
        mcud_store_sums(sums, low);
        mcud_store_sums(sums + 8, high);
        return;
    }
    for (int32_t c = 0; c < channels; c += 8, memory += 8) {
        const mve_pred16_t there = vctp16q((uint32_t)(channels - c));
        int16x8_t sum = vdupq_n_s16(0);
        for (const uint32_t *row = window->offsets; row < end; row++) {
            const int8_t *x = (const int8_t *)(const void *)(memory + *row);
            for (int32_t s = cols; s > 0; s--, x += pitch) {
                sum = vaddq_s16(sum, vldrbq_z_s16(x, there));
            }
        }
        mcud_store_sums(sums + c, sum);
    }
}

/* The sums of up to MCUD_SUMS channels from `channel` on. */
static inline void mcud_sum_window(const mcud_byte_window *window, int32_t channel, int32_t channels,
                                   int32_t sums[MCUD_SUMS])
{
    if (window->rows * window->cols <= MCUD_SHORT_TAPS) {
        mcud_sum_short(window, channel, channels, sums);
        return;
    }
    memset(sums, 0, MCUD_SUMS * sizeof *sums);
    mcud_byte_window part = *window;
    for (int32_t r = 0; r < window->rows; r++, part.offsets++) {
        part.rows = 1;
        part.memory = window->memory;
        for (int32_t left = window->cols; left > 0; left -= part.cols, part.memory += part.cols * part.pitch) {
            int32_t more[MCUD_SUMS];
            part.cols = left < MCUD_SHORT_TAPS ? left : MCUD_SHORT_TAPS;
            mcud_sum_short(&part, channel, channels, more);
            for (int32_t i = 0; i < MCUD_SUMS && i < channels; i++) {
                sums[i] += more[i];
            }
        }
    }
}

/* sums[count] -> y[count]. Halves are rounded up; of a tie, which has half of 2^32 as its lower word, the result then loses
 * its lowest bit. */
static inline void mcud_means(const int32_t *sums, int32_t count, const mcud_mean_quant *by, int8_t *y)
{
    const int32_t left = 32 - by->shift;
    if (left < 0 || left > 23 || by->taps > 1 << (23 - left)) {
        mcud_means_singly(sums, count, by, y);
        return;
    }
    const int32x4_t multiplier = vdupq_n_s32(by->multiplier);
    const int32x4_t half = vdupq_n_s32(INT32_MIN);
    int32x4_t v;
    int32x4_t x;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vldrw.32 %q[v], [%[sums]], #16\n\t"
                     "vadd.i32 %q[v], %q[v], %[offset]\n\t"
                     "vshl.s32 %q[v], %[left]\n\t"
                     "vmul.i32 %q[x], %q[v], %q[multiplier]\n\t"
                     "vrmulh.s32 %q[v], %q[v], %q[multiplier]\n\t"
                     "veor %q[x], %q[x], %q[half]\n\t"
                     "vclz.i32 %q[x], %q[x]\n\t"
                     "vshr.u32 %q[x], %q[x], #5\n\t"
                     "vbic %q[v], %q[v], %q[x]\n\t"
                     "vadd.i32 %q[v], %q[v], %[zero]\n\t"
                     "vqmovnb.s32 %q[v], %q[v]\n\t"
                     "vqmovnb.s16 %q[v], %q[v]\n\t"
                     "vstrb.32 %q[v], [%[y]], #4\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [sums] "+r"(sums), [y] "+l"(y), [v] "=&w"(v), [x] "=&w"(x)
                     : [count] "r"(count), [offset] "r"(by->offset), [left] "r"(left), [zero] "r"(by->zero_point),
                       [multiplier] "w"(multiplier), [half] "w"(half)
                     : "lr", "memory");
}

#endif
