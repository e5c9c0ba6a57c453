/* mcud_vector.h by intrinsics of the M-profile Vector Extension. */
#ifndef MCUD_VECTOR_MVE_H
#define MCUD_VECTOR_MVE_H

#include <arm_mve.h>

/* to[bytes] = from[bytes] */
static inline void mcud_vector_copy(void *to, const void *from, int32_t bytes)
{
    int8_t *y = to;
    const int8_t *x = from;
    for (; bytes >= 16; bytes -= 16, x += 16, y += 16) {
        vst1q_s8(y, vld1q_s8(x));
    }
    if (bytes > 0) {
        const mve_pred16_t rest = vctp8q((uint32_t)bytes);
        vst1q_p_s8(y, vld1q_z_s8(x, rest), rest);
    }
}

/* to[bytes], all `value` */
static inline void mcud_vector_fill(void *to, int32_t value, int32_t bytes)
{
    int8_t *y = to;
    for (; bytes > 0; bytes -= 16, y += 16) {
        vst1q_p_s8(y, vdupq_n_s8((int8_t)value), vctp8q((uint32_t)bytes));
    }
}

/* sum * 2^left, saturated */
static inline int32_t mcud_vector_scale_up(int32_t sum, int32_t left)
{
    return sqrshr(sum, -left);
}

/* One sum to a result. */
static inline int8_t mcud_vector_result(int32_t sum, int32_t multiplier, const mcud_vector_finish *finish)
{
    int32_t result = finish->left == 0 ? sum : mcud_vector_scale_up(sum, finish->left);
    __asm__("smmlar %0, %0, %1, %2" : "+r"(result) : "r"(multiplier), "r"(finish->zero_point));
    __asm__("ssat %0, #8, %0" : "+r"(result));
    return (int8_t)result;
}

/* Loads 16 bytes, or as many as are left in a loop by letp, and adds products. */
#define MCUD_LOAD(to, from) "vldrb.8 %q[" to "], [%[" from "]], #16\n\t"
#define MCUD_ADD(to, x, w) "vmladava.s8 %[" to "], %q[" x "], %q[" w "]\n\t"

/* Three pixels of x[depth] by the two channels of a record: 12 instructions for 96 products. */
static inline const int32_t *mcud_vector_3x2(const int8_t *const x[3], int32_t depth, const int32_t *record,
                                             const mcud_vector_finish *finish, int8_t *y, int32_t pitch)
{
    const int8_t *x0 = x[0];
    const int8_t *x1 = x[1];
    const int8_t *x2 = x[2];
    int32_t a = record[0];
    int32_t b = record[1];
    int32_t c = a;
    int32_t d = b;
    int32_t e = a;
    int32_t f = b;
    int8x16_t v;
    int8x16_t w0;
    int8x16_t w1;
    record += 2;
    __asm__("wlstp.8 lr, %[depth], 2f\n"
            "1:\n\t"
            MCUD_LOAD("w0", "w")
            MCUD_LOAD("w1", "w")
            MCUD_LOAD("v", "x0")
            MCUD_ADD("a", "v", "w0")
            MCUD_ADD("b", "v", "w1")
            MCUD_LOAD("v", "x1")
            MCUD_ADD("c", "v", "w0")
            MCUD_ADD("d", "v", "w1")
            MCUD_LOAD("v", "x2")
            MCUD_ADD("e", "v", "w0")
            MCUD_ADD("f", "v", "w1")
            "letp lr, 1b\n"
            "2:"
            : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [w] "+r"(record), [a] "+Te"(a), [b] "+Te"(b),
              [c] "+Te"(c), [d] "+Te"(d), [e] "+Te"(e), [f] "+Te"(f), [v] "=&w"(v), [w0] "=&w"(w0),
              [w1] "=&w"(w1)
            : [depth] "r"(depth)
            : "lr", "memory");
    y[0] = mcud_vector_result(a, record[0], finish);
    y[1] = mcud_vector_result(b, record[1], finish);
    y += pitch;
    y[0] = mcud_vector_result(c, record[0], finish);
    y[1] = mcud_vector_result(d, record[1], finish);
    y += pitch;
    y[0] = mcud_vector_result(e, record[0], finish);
    y[1] = mcud_vector_result(f, record[1], finish);
    return record + 2;
}

/* Two pixels. */
static inline const int32_t *mcud_vector_2x2(const int8_t *const x[2], int32_t depth, const int32_t *record,
                                             const mcud_vector_finish *finish, int8_t *y, int32_t pitch)
{
    const int8_t *x0 = x[0];
    const int8_t *x1 = x[1];
    int32_t a = record[0];
    int32_t b = record[1];
    int32_t c = a;
    int32_t d = b;
    int8x16_t v;
    int8x16_t w0;
    int8x16_t w1;
    record += 2;
    __asm__("wlstp.8 lr, %[depth], 2f\n"
            "1:\n\t"
            MCUD_LOAD("w0", "w")
            MCUD_LOAD("w1", "w")
            MCUD_LOAD("v", "x0")
            MCUD_ADD("a", "v", "w0")
            MCUD_ADD("b", "v", "w1")
            MCUD_LOAD("v", "x1")
            MCUD_ADD("c", "v", "w0")
            MCUD_ADD("d", "v", "w1")
            "letp lr, 1b\n"
            "2:"
            : [x0] "+r"(x0), [x1] "+r"(x1), [w] "+r"(record), [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c),
              [d] "+Te"(d), [v] "=&w"(v), [w0] "=&w"(w0), [w1] "=&w"(w1)
            : [depth] "r"(depth)
            : "lr", "memory");
    y[0] = mcud_vector_result(a, record[0], finish);
    y[1] = mcud_vector_result(b, record[1], finish);
    y[pitch] = mcud_vector_result(c, record[0], finish);
    y[pitch + 1] = mcud_vector_result(d, record[1], finish);
    return record + 2;
}

/* sums[2] += one pixel by the weights of two channels; the weights behind them. */
static inline const int32_t *mcud_vector_dot_1x2(const int8_t *x, int32_t depth, const int32_t *weights, int32_t sums[2])
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    int8x16_t v;
    int8x16_t w;
    __asm__("wlstp.8 lr, %[depth], 2f\n"
            "1:\n\t"
            MCUD_LOAD("v", "x")
            MCUD_LOAD("k", "w")
            MCUD_ADD("a", "v", "k")
            MCUD_LOAD("k", "w")
            MCUD_ADD("b", "v", "k")
            "letp lr, 1b\n"
            "2:"
            : [x] "+r"(x), [w] "+r"(weights), [a] "+Te"(a), [b] "+Te"(b), [v] "=&w"(v), [k] "=&w"(w)
            : [depth] "r"(depth)
            : "lr", "memory");
    sums[0] = a;
    sums[1] = b;
    return weights;
}

/* Four sums to results that are not narrowed yet. */
static inline int32x4_t mcud_vector_results(int32x4_t sums, const int32_t *multipliers, const mcud_vector_finish *finish)
{
    if (finish->left != 0) {
        sums = vqshlq_r_s32(sums, finish->left);
    }
    return vaddq_n_s32(vrmulhq_s32(sums, vld1q_s32(multipliers)), finish->zero_point);
}

/* Two taps of 16 channels, `load` being how x is loaded: the sum of two products fits 16 bits. The second x is loaded
 * twice, there being 8 vector registers. */
#define MCUD_TAP_PAIRS(load)                                                                                 \
    "wls lr, %[pairs], 2f\n"                                                                                 \
    "1:\n\t"                                                                                                \
    "ldrd %[p0], %[p1], [%[taps]], #8\n\t"                                                                  \
    "add %[p0], %[p0], %[at]\n\t"                                                                           \
    "add %[p1], %[p1], %[at]\n\t"                                                                           \
    load " %q[x], [%[p0]]\n\t"                                                                              \
    "vldrb.8 %q[k], [%[w]], #16\n\t"                                                                        \
    "vmullb.s8 %q[e], %q[x], %q[k]\n\t"                                                                     \
    "vmullt.s8 %q[o], %q[x], %q[k]\n\t"                                                                     \
    load " %q[x], [%[p1]]\n\t"                                                                              \
    "vldrb.8 %q[k], [%[w]], #16\n\t"                                                                        \
    "vmullb.s8 %q[x], %q[x], %q[k]\n\t"                                                                     \
    "vadd.i16 %q[e], %q[e], %q[x]\n\t"                                                                      \
    load " %q[x], [%[p1]]\n\t"                                                                              \
    "vmullt.s8 %q[k], %q[x], %q[k]\n\t"                                                                     \
    "vadd.i16 %q[o], %q[o], %q[k]\n\t"                                                                      \
    "vmovlb.s16 %q[x], %q[e]\n\t"                                                                           \
    "vmovlt.s16 %q[e], %q[e]\n\t"                                                                           \
    "vadd.i32 %q[a], %q[a], %q[x]\n\t"                                                                      \
    "vadd.i32 %q[b], %q[b], %q[e]\n\t"                                                                      \
    "vmovlb.s16 %q[x], %q[o]\n\t"                                                                           \
    "vmovlt.s16 %q[o], %q[o]\n\t"                                                                           \
    "vadd.i32 %q[c], %q[c], %q[x]\n\t"                                                                      \
    "vadd.i32 %q[d], %q[d], %q[o]\n\t"                                                                      \
    "le lr, 1b\n"                                                                                            \
    "2:"

/* `count` channels, at most 16, that lie `at` bytes behind the taps of a window -> y[count]. */
static inline const int32_t *mcud_vector_taps(const int8_t *const *taps, int32_t tap_count, int32_t at,
                                              const int32_t *record, const mcud_vector_finish *finish,
                                              int8_t *y, int32_t count)
{
    const int32_t *w = record + 16;
    int32x4_t a = vld1q_s32(record);
    int32x4_t b = vld1q_s32(record + 4);
    int32x4_t c = vld1q_s32(record + 8);
    int32x4_t d = vld1q_s32(record + 12);
    int8x16_t x;
    int8x16_t k;
    int8x16_t e;
    int8x16_t o;
    int32_t p0;
    int32_t p1;
    if (count == 16) {
        __asm__(MCUD_TAP_PAIRS("vldrb.8")
                : [taps] "+r"(taps), [w] "+r"(w), [a] "+w"(a), [b] "+w"(b), [c] "+w"(c), [d] "+w"(d),
                  [x] "=&w"(x), [k] "=&w"(k), [e] "=&w"(e), [o] "=&w"(o), [p0] "=&r"(p0), [p1] "=&r"(p1)
                : [at] "r"(at), [pairs] "r"(tap_count / 2)
                : "lr", "memory");
    } else {
        int32_t predicate; /* put back, since a clobbered one cannot be named */
        __asm__("vmrs %[predicate], p0\n\tvctp.8 %[count]\n\t" MCUD_TAP_PAIRS("vpst\n\tvldrbt.8")
                "\n\tvmsr p0, %[predicate]"
                : [taps] "+r"(taps), [w] "+r"(w), [a] "+w"(a), [b] "+w"(b), [c] "+w"(c), [d] "+w"(d),
                  [x] "=&w"(x), [k] "=&w"(k), [e] "=&w"(e), [o] "=&w"(o), [p0] "=&r"(p0), [p1] "=&r"(p1),
                  [predicate] "=&r"(predicate)
                : [at] "r"(at), [pairs] "r"(tap_count / 2), [count] "r"(count)
                : "lr", "memory");
    }
    const mve_pred16_t some = vctp8q((uint32_t)count);
    if (tap_count % 2 != 0) {
        x = vld1q_z_s8(taps[0] + at, some);
        k = vld1q_s8((const int8_t *)w);
        const int16x8_t even = vmullbq_int_s8(x, k);
        const int16x8_t odd = vmulltq_int_s8(x, k);
        a = vaddq_s32(a, vmovlbq_s16(even));
        b = vaddq_s32(b, vmovltq_s16(even));
        c = vaddq_s32(c, vmovlbq_s16(odd));
        d = vaddq_s32(d, vmovltq_s16(odd));
        w += 4;
    }
    a = mcud_vector_results(a, w, finish);
    b = mcud_vector_results(b, w + 4, finish);
    c = mcud_vector_results(c, w + 8, finish);
    d = mcud_vector_results(d, w + 12, finish);
    const int16x8_t even = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(a), a), b);
    const int16x8_t odd = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(c), c), d);
    vst1q_p_s8(y, vqmovntq_s16(vqmovnbq_s16(vreinterpretq_s8_s16(even), even), odd), some);
    return w + 16;
}

#endif
