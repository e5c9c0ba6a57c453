/* The fast Fourier transform of mixed radix, for any type of number.
 *
 * The includer defines mcud_number, mcud_point of two numbers, and on them: mcud_add, mcud_subtract, mcud_negative,
 * mcud_times and mcud_product (of real and complex factors below 1), mcud_part (a number divided by the radix, where
 * that keeps sums in range), mcud_half, mcud_half_sum and mcud_half_gap (of a sum and a difference). Fixed-point
 * numbers wrap around.
 *
 * The order of operations, and so the rounding, is that of a decimation in time by radices 4, 2, 3 and 5. The first
 * radix is combined last.
 */
#ifndef MCUD_FFT_H
#define MCUD_FFT_H

#include "mcud.h"

enum { MCUD_FFT_STAGES = 16 };

/* The constants of a transform. */
typedef struct {
    const mcud_point *twiddles; /* [points] */
    const mcud_point *unpack;   /* [points / 2], of the step between complex and real */
    const uint16_t *radices;
    int32_t points;
    int32_t stages;
    int inverse;
} mcud_transform;

/* The mcud_transform of a kernel's parameters. */
#define MCUD_TRANSFORM(params, is_inverse)                  \
    {                                                       \
        .twiddles = (const mcud_point *)(params)->twiddles, \
        .unpack = (const mcud_point *)(params)->unpack,     \
        .radices = (params)->radices,                       \
        .points = (params)->points,                         \
        .stages = (params)->stages,                         \
        .inverse = (is_inverse),                            \
    }

/* The index of the point that the first stage reads next, and its digits of mixed radix. */
typedef struct {
    int32_t index;
    uint8_t digits[MCUD_FFT_STAGES];
} mcud_digits;

static inline mcud_point mcud_plus(mcud_point a, mcud_point b)
{
    return (mcud_point){mcud_add(a.re, b.re), mcud_add(a.im, b.im)};
}

static inline mcud_point mcud_minus(mcud_point a, mcud_point b)
{
    return (mcud_point){mcud_subtract(a.re, b.re), mcud_subtract(a.im, b.im)};
}

static inline mcud_point mcud_divided(mcud_point a, int32_t radix)
{
    return (mcud_point){mcud_part(a.re, radix), mcud_part(a.im, radix)};
}

static inline mcud_point mcud_conjugate(mcud_point a)
{
    return (mcud_point){a.re, mcud_negative(a.im)};
}

static void mcud_next_digits(mcud_digits *at, const mcud_transform *fft)
{
    int32_t step = fft->points;
    for (int32_t stage = fft->stages - 1; stage >= 0; stage--) {
        const int32_t radix = fft->radices[stage];
        step /= radix;
        at->index += step;
        if (++at->digits[stage] < radix) {
            return;
        }
        at->index -= radix * step;
        at->digits[stage] = 0;
    }
}

static void mcud_combine_2(mcud_point *out, const mcud_point *twiddles, int32_t stride, int32_t size)
{
    for (int32_t i = 0; i < size; i++, out++) {
        const mcud_point a = mcud_divided(out[0], 2);
        const mcud_point b = mcud_product(mcud_divided(out[size], 2), twiddles[i * stride]);
        out[size] = mcud_minus(a, b);
        out[0] = mcud_plus(a, b);
    }
}

static void mcud_combine_3(mcud_point *out, const mcud_point *twiddles, int32_t stride, int32_t size)
{
    const mcud_number sine = twiddles[stride * size].im;
    for (int32_t i = 0; i < size; i++, out++) {
        const mcud_point a = mcud_divided(out[0], 3);
        const mcud_point b = mcud_product(mcud_divided(out[size], 3), twiddles[i * stride]);
        const mcud_point c = mcud_product(mcud_divided(out[2 * size], 3), twiddles[2 * i * stride]);
        const mcud_point sum = mcud_plus(b, c);
        const mcud_point gap = mcud_minus(b, c);
        const mcud_point middle = {mcud_subtract(a.re, mcud_half(sum.re)), mcud_subtract(a.im, mcud_half(sum.im))};
        const mcud_point turned = {mcud_times(gap.re, sine), mcud_times(gap.im, sine)};
        out[0] = mcud_plus(a, sum);
        out[2 * size] = (mcud_point){mcud_add(middle.re, turned.im), mcud_subtract(middle.im, turned.re)};
        out[size] = (mcud_point){mcud_subtract(middle.re, turned.im), mcud_add(middle.im, turned.re)};
    }
}

static void mcud_combine_4(mcud_point *out, const mcud_transform *fft, int32_t stride, int32_t size)
{
    for (int32_t i = 0; i < size; i++, out++) {
        const mcud_point a = mcud_divided(out[0], 4);
        const mcud_point b = mcud_product(mcud_divided(out[size], 4), fft->twiddles[i * stride]);
        const mcud_point c = mcud_product(mcud_divided(out[2 * size], 4), fft->twiddles[2 * i * stride]);
        const mcud_point d = mcud_product(mcud_divided(out[3 * size], 4), fft->twiddles[3 * i * stride]);
        const mcud_point even = mcud_plus(a, c);
        const mcud_point even_gap = mcud_minus(a, c);
        const mcud_point odd = mcud_plus(b, d);
        const mcud_point odd_gap = fft->inverse ? mcud_minus(d, b) : mcud_minus(b, d);
        out[0] = mcud_plus(even, odd);
        out[2 * size] = mcud_minus(even, odd);
        out[size] = (mcud_point){mcud_add(even_gap.re, odd_gap.im), mcud_subtract(even_gap.im, odd_gap.re)};
        out[3 * size] = (mcud_point){mcud_subtract(even_gap.re, odd_gap.im), mcud_add(even_gap.im, odd_gap.re)};
    }
}

/* Returns a + x * p + y * q, added in this order. */
static inline mcud_point mcud_weighted(mcud_point a, mcud_point x, mcud_number p, mcud_point y, mcud_number q)
{
    return (mcud_point){mcud_add(mcud_add(a.re, mcud_times(x.re, p)), mcud_times(y.re, q)),
                        mcud_add(mcud_add(a.im, mcud_times(x.im, p)), mcud_times(y.im, q))};
}

static void mcud_combine_5(mcud_point *out, const mcud_point *twiddles, int32_t stride, int32_t size)
{
    const mcud_point first = twiddles[stride * size];
    const mcud_point second = twiddles[2 * stride * size];
    for (int32_t i = 0; i < size; i++, out++) {
        const mcud_point a = mcud_divided(out[0], 5);
        const mcud_point b = mcud_product(mcud_divided(out[size], 5), twiddles[i * stride]);
        const mcud_point c = mcud_product(mcud_divided(out[2 * size], 5), twiddles[2 * i * stride]);
        const mcud_point d = mcud_product(mcud_divided(out[3 * size], 5), twiddles[3 * i * stride]);
        const mcud_point e = mcud_product(mcud_divided(out[4 * size], 5), twiddles[4 * i * stride]);
        const mcud_point outer = mcud_plus(b, e);
        const mcud_point outer_gap = mcud_minus(b, e);
        const mcud_point inner = mcud_plus(c, d);
        const mcud_point inner_gap = mcud_minus(c, d);
        const mcud_point one = mcud_weighted(a, outer, first.re, inner, second.re);
        const mcud_point one_turn = {
            mcud_add(mcud_times(outer_gap.im, first.im), mcud_times(inner_gap.im, second.im)),
            mcud_subtract(mcud_negative(mcud_times(outer_gap.re, first.im)), mcud_times(inner_gap.re, second.im))};
        const mcud_point two = mcud_weighted(a, outer, second.re, inner, first.re);
        const mcud_point two_turn = {
            mcud_add(mcud_negative(mcud_times(outer_gap.im, second.im)), mcud_times(inner_gap.im, first.im)),
            mcud_subtract(mcud_times(outer_gap.re, second.im), mcud_times(inner_gap.re, first.im))};
        out[0] = mcud_plus(a, mcud_plus(outer, inner));
        out[size] = mcud_minus(one, one_turn);
        out[4 * size] = mcud_plus(one, one_turn);
        out[2 * size] = mcud_plus(two, two_turn);
        out[3 * size] = mcud_minus(two, two_turn);
    }
}

/* Runs the stages in place, on points in the order of mcud_next_digits. */
static void mcud_fft_combine(mcud_point *out, const mcud_transform *fft)
{
    int32_t size = 1;
    for (int32_t stage = fft->stages - 1; stage >= 0; stage--) {
        const int32_t radix = fft->radices[stage];
        const int32_t stride = fft->points / (radix * size);
        for (mcud_point *block = out; block < out + fft->points; block += radix * size) {
            if (radix == 4) {
                mcud_combine_4(block, fft, stride, size);
            } else if (radix == 2) {
                mcud_combine_2(block, fft->twiddles, stride, size);
            } else if (radix == 3) {
                mcud_combine_3(block, fft->twiddles, stride, size);
            } else {
                mcud_combine_5(block, fft->twiddles, stride, size);
            }
        }
        size *= radix;
    }
}

/* Point `index` of real numbers taken in pairs; zeros follow the `count` numbers. */
static inline mcud_point mcud_pair(const mcud_number *in, int32_t index, int32_t count)
{
    const int32_t first = 2 * index;
    return (mcud_point){first < count ? in[first] : 0, first + 1 < count ? in[first + 1] : 0};
}

/* Computes the spectrum [points + 1] of `count` real numbers, which zeros follow. */
static inline void mcud_fft_forward(const mcud_number *in, int32_t count, mcud_point *out, const mcud_transform *fft)
{
    const int32_t points = fft->points;
    mcud_digits at = {0, {0}};
    for (int32_t i = 0; i < points; i++) {
        out[i] = mcud_pair(in, at.index, count);
        mcud_next_digits(&at, fft);
    }
    mcud_fft_combine(out, fft);
    const mcud_point ends = mcud_divided(out[0], 2);
    out[0] = (mcud_point){mcud_add(ends.re, ends.im), 0};
    out[points] = (mcud_point){mcud_subtract(ends.re, ends.im), 0};
    for (int32_t i = 1; i <= points / 2; i++) {
        const mcud_point low = mcud_divided(out[i], 2);
        const mcud_point high = mcud_divided(mcud_conjugate(out[points - i]), 2);
        const mcud_point sum = mcud_plus(low, high);
        const mcud_point turned = mcud_product(mcud_minus(low, high), fft->unpack[i - 1]);
        out[i] = (mcud_point){mcud_half_sum(sum.re, turned.re), mcud_half_sum(sum.im, turned.im)};
        out[points - i] = (mcud_point){mcud_half_gap(sum.re, turned.re), mcud_half_gap(turned.im, sum.im)};
    }
}

/* Point `index` of the complex transform whose results, in pairs, are the real numbers of a spectrum. */
static inline mcud_point mcud_packed(const mcud_point *in, int32_t index, const mcud_transform *fft)
{
    const int32_t points = fft->points;
    if (index == 0) {
        const mcud_point ends = {mcud_add(in[0].re, in[points].re), mcud_subtract(in[0].re, in[points].re)};
        return mcud_divided(ends, 2);
    }
    const int32_t low = 2 * index < points ? index : points - index;
    const mcud_point a = mcud_divided(in[low], 2);
    const mcud_point b = mcud_divided(mcud_conjugate(in[points - low]), 2);
    const mcud_point sum = mcud_plus(a, b);
    const mcud_point turned = mcud_product(mcud_minus(a, b), fft->unpack[low - 1]);
    return low == index && 2 * low != points ? mcud_plus(sum, turned) : mcud_conjugate(mcud_minus(sum, turned));
}

/* Computes the 2 * points real numbers of a spectrum [points + 1], two to a point. */
static inline void mcud_fft_backward(const mcud_point *in, mcud_point *out, const mcud_transform *fft)
{
    mcud_digits at = {0, {0}};
    for (int32_t i = 0; i < fft->points; i++) {
        out[i] = mcud_packed(in, at.index, fft);
        mcud_next_digits(&at, fft);
    }
    mcud_fft_combine(out, fft);
}

#endif
