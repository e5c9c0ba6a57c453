/* The fast Fourier transform of mixed radix, for any type of number.
 *
 * The includer defines `number`, `point` of two numbers, and on them: add, subtract, negative, times and product (of
 * real and complex factors below 1), part (a number divided by the radix, where that keeps sums in range), half,
 * half_sum and half_gap (of a sum and a difference). Fixed-point numbers wrap around.
 *
 * The order of operations, and so the rounding, is that of a decimation in time by radices 4, 2, 3 and 5, the
 * first of which is the last to be combined.
 */
#ifndef MCUD_FFT_H
#define MCUD_FFT_H

#include "mcud.h"

enum { MCUD_FFT_STAGES = 16 };

/* The constants of a transform. */
typedef struct {
    const point *twiddles; /* [points] */
    const point *unpack;   /* [points / 2], of the step between complex and real */
    const uint16_t *radices;
    int32_t points;
    int32_t stages;
    int inverse;
} transform;

/* A place in the order in which the first stage reads the points: digits of mixed radix. */
typedef struct {
    int32_t index;
    uint8_t digits[MCUD_FFT_STAGES];
} place;

static inline point plus(point a, point b)
{
    return (point){add(a.re, b.re), add(a.im, b.im)};
}

static inline point minus(point a, point b)
{
    return (point){subtract(a.re, b.re), subtract(a.im, b.im)};
}

static inline point divided(point a, int32_t radix)
{
    return (point){part(a.re, radix), part(a.im, radix)};
}

static inline point conjugate(point a)
{
    return (point){a.re, negative(a.im)};
}

static void next(place *at, const transform *made)
{
    int32_t step = made->points;
    for (int32_t stage = made->stages - 1; stage >= 0; stage--) {
        const int32_t radix = made->radices[stage];
        step /= radix;
        at->index += step;
        if (++at->digits[stage] < radix) {
            return;
        }
        at->index -= radix * step;
        at->digits[stage] = 0;
    }
}

static void combine_2(point *out, const point *twiddles, int32_t stride, int32_t size)
{
    for (int32_t i = 0; i < size; i++, out++) {
        const point a = divided(out[0], 2);
        const point b = product(divided(out[size], 2), twiddles[i * stride]);
        out[size] = minus(a, b);
        out[0] = plus(a, b);
    }
}

static void combine_3(point *out, const point *twiddles, int32_t stride, int32_t size)
{
    const number sine = twiddles[stride * size].im;
    for (int32_t i = 0; i < size; i++, out++) {
        const point a = divided(out[0], 3);
        const point b = product(divided(out[size], 3), twiddles[i * stride]);
        const point c = product(divided(out[2 * size], 3), twiddles[2 * i * stride]);
        const point sum = plus(b, c);
        const point gap = minus(b, c);
        const point middle = {subtract(a.re, half(sum.re)), subtract(a.im, half(sum.im))};
        const point turned = {times(gap.re, sine), times(gap.im, sine)};
        out[0] = plus(a, sum);
        out[2 * size] = (point){add(middle.re, turned.im), subtract(middle.im, turned.re)};
        out[size] = (point){subtract(middle.re, turned.im), add(middle.im, turned.re)};
    }
}

static void combine_4(point *out, const transform *made, int32_t stride, int32_t size)
{
    for (int32_t i = 0; i < size; i++, out++) {
        const point a = divided(out[0], 4);
        const point b = product(divided(out[size], 4), made->twiddles[i * stride]);
        const point c = product(divided(out[2 * size], 4), made->twiddles[2 * i * stride]);
        const point d = product(divided(out[3 * size], 4), made->twiddles[3 * i * stride]);
        const point even = plus(a, c);
        const point even_gap = minus(a, c);
        const point odd = plus(b, d);
        const point odd_gap = made->inverse ? minus(d, b) : minus(b, d);
        out[0] = plus(even, odd);
        out[2 * size] = minus(even, odd);
        out[size] = (point){add(even_gap.re, odd_gap.im), subtract(even_gap.im, odd_gap.re)};
        out[3 * size] = (point){subtract(even_gap.re, odd_gap.im), add(even_gap.im, odd_gap.re)};
    }
}

static void combine_5(point *out, const point *twiddles, int32_t stride, int32_t size)
{
    const point first = twiddles[stride * size];
    const point second = twiddles[2 * stride * size];
    for (int32_t i = 0; i < size; i++, out++) {
        const point a = divided(out[0], 5);
        const point b = product(divided(out[size], 5), twiddles[i * stride]);
        const point c = product(divided(out[2 * size], 5), twiddles[2 * i * stride]);
        const point d = product(divided(out[3 * size], 5), twiddles[3 * i * stride]);
        const point e = product(divided(out[4 * size], 5), twiddles[4 * i * stride]);
        const point outer = plus(b, e);
        const point outer_gap = minus(b, e);
        const point inner = plus(c, d);
        const point inner_gap = minus(c, d);
        const point one = {add(add(a.re, times(outer.re, first.re)), times(inner.re, second.re)),
                            add(add(a.im, times(outer.im, first.re)), times(inner.im, second.re))};
        const point one_turn = {
            add(times(outer_gap.im, first.im), times(inner_gap.im, second.im)),
            subtract(negative(times(outer_gap.re, first.im)), times(inner_gap.re, second.im))};
        const point two = {add(add(a.re, times(outer.re, second.re)), times(inner.re, first.re)),
                           add(add(a.im, times(outer.im, second.re)), times(inner.im, first.re))};
        const point two_turn = {
            add(negative(times(outer_gap.im, second.im)), times(inner_gap.im, first.im)),
            subtract(times(outer_gap.re, second.im), times(inner_gap.re, first.im))};
        out[0] = plus(a, plus(outer, inner));
        out[size] = minus(one, one_turn);
        out[4 * size] = plus(one, one_turn);
        out[2 * size] = plus(two, two_turn);
        out[3 * size] = minus(two, two_turn);
    }
}

/* The stages, in place, on points in the order of `next`. */
static void combine(point *out, const transform *made)
{
    int32_t size = 1;
    for (int32_t stage = made->stages - 1; stage >= 0; stage--) {
        const int32_t radix = made->radices[stage];
        const int32_t stride = made->points / (radix * size);
        for (point *block = out; block < out + made->points; block += radix * size) {
            if (radix == 4) {
                combine_4(block, made, stride, size);
            } else if (radix == 2) {
                combine_2(block, made->twiddles, stride, size);
            } else if (radix == 3) {
                combine_3(block, made->twiddles, stride, size);
            } else {
                combine_5(block, made->twiddles, stride, size);
            }
        }
        size *= radix;
    }
}

/* Point `index` of real numbers taken in pairs; zeros follow the `count` numbers. */
static inline point pair(const number *in, int32_t index, int32_t count)
{
    const int32_t first = 2 * index;
    return (point){first < count ? in[first] : 0, first + 1 < count ? in[first + 1] : 0};
}

/* The spectrum [points + 1] of `count` real numbers, and zeros after them. */
static inline void forward(const number *in, int32_t count, point *out, const transform *made)
{
    const int32_t points = made->points;
    place at = {0, {0}};
    for (int32_t i = 0; i < points; i++) {
        out[i] = pair(in, at.index, count);
        next(&at, made);
    }
    combine(out, made);
    const point ends = divided(out[0], 2);
    out[0] = (point){add(ends.re, ends.im), 0};
    out[points] = (point){subtract(ends.re, ends.im), 0};
    for (int32_t i = 1; i <= points / 2; i++) {
        const point low = divided(out[i], 2);
        const point high = divided(conjugate(out[points - i]), 2);
        const point sum = plus(low, high);
        const point turned = product(minus(low, high), made->unpack[i - 1]);
        out[i] = (point){half_sum(sum.re, turned.re), half_sum(sum.im, turned.im)};
        out[points - i] = (point){half_gap(sum.re, turned.re), half_gap(turned.im, sum.im)};
    }
}

/* Point `index` of the complex transform whose results, in pairs, are the real numbers of a spectrum. */
static inline point packed(const point *in, int32_t index, const transform *made)
{
    const int32_t points = made->points;
    if (index == 0) {
        const point ends = {add(in[0].re, in[points].re), subtract(in[0].re, in[points].re)};
        return divided(ends, 2);
    }
    const int32_t low = 2 * index < points ? index : points - index;
    const point a = divided(in[low], 2);
    const point b = divided(conjugate(in[points - low]), 2);
    const point sum = plus(a, b);
    const point turned = product(minus(a, b), made->unpack[low - 1]);
    return low == index && 2 * low != points ? plus(sum, turned) : conjugate(minus(sum, turned));
}

/* 2 * points real numbers, as points, of a spectrum [points + 1]. */
static inline void backward(const point *in, point *out, const transform *made)
{
    place at = {0, {0}};
    for (int32_t i = 0; i < made->points; i++) {
        out[i] = packed(in, at.index, made);
        next(&at, made);
    }
    combine(out, made);
}

#endif
