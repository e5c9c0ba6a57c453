/* mcud_product_s8.h by the M-profile Vector Extension. */
#ifndef MCUD_PRODUCT_S8_MVE_H
#define MCUD_PRODUCT_S8_MVE_H

#include <arm_mve.h>

/* sums[4] += a[length] by each of four lines of b; length is not 0 */
static inline void mcud_product_lines(const mcud_product_s8 *what, const int8_t *a, const int8_t *const b[4],
                                      int32_t length, int32_t sums[4])
{
    const int8_t *b0 = b[0];
    const int8_t *b1 = b[1];
    const int8_t *b2 = b[2];
    const int8_t *b3 = b[3];
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
#if MCUD_BLOCKS && !defined(__clang__)
    const int16x8_t zero = vdupq_n_s16((int16_t)what->a_zero_point);
    int32_t a_sum = length; /* holds the length first: there are no more registers */
    int16x8_t x;
    int16x8_t w;
    __asm__("dlstp.16 lr, %[a_sum]\n\t"
            "mov %[a_sum], #0\n"
            "1:\n\t"
            "vldrb.s16 %q[x], [%[a]], #8\n\t"
            "vsub.i16 %q[x], %q[x], %q[zero]\n\t"
            "vldrb.s16 %q[w], [%[b0]], #8\n\t"
            "vmladava.s16 %[s0], %q[x], %q[w]\n\t"
            "vldrb.s16 %q[w], [%[b1]], #8\n\t"
            "vmladava.s16 %[s1], %q[x], %q[w]\n\t"
            "vldrb.s16 %q[w], [%[b2]], #8\n\t"
            "vmladava.s16 %[s2], %q[x], %q[w]\n\t"
            "vldrb.s16 %q[w], [%[b3]], #8\n\t"
            "vmladava.s16 %[s3], %q[x], %q[w]\n\t"
            "vaddva.s16 %[a_sum], %q[x]\n\t"
            "letp lr, 1b"
            : [a] "+l"(a), [b0] "+l"(b0), [b1] "+l"(b1), [b2] "+l"(b2), [b3] "+l"(b3), [s0] "+Te"(s0),
              [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3), [a_sum] "+Te"(a_sum), [x] "=&w"(x), [w] "=&w"(w)
            : [zero] "w"(zero)
            : "lr", "memory");
#else
    int32_t a_sum = 0;
    for (int32_t left = length; left > 0; left -= 8, a += 8, b0 += 8, b1 += 8, b2 += 8, b3 += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)left);
        const int16x8_t x = vsubq_n_s16(vldrbq_z_s16(a, some), (int16_t)what->a_zero_point);
        s0 = vmladavaq_p_s16(s0, x, vldrbq_z_s16(b0, some), some);
        s1 = vmladavaq_p_s16(s1, x, vldrbq_z_s16(b1, some), some);
        s2 = vmladavaq_p_s16(s2, x, vldrbq_z_s16(b2, some), some);
        s3 = vmladavaq_p_s16(s3, x, vldrbq_z_s16(b3, some), some);
        a_sum = vaddvaq_p_s16(a_sum, x, some);
    }
#endif
    const int32_t shared = a_sum * what->b_zero_point;
    sums[0] = s0 - shared;
    sums[1] = s1 - shared;
    sums[2] = s2 - shared;
    sums[3] = s3 - shared;
}

/* sums[16] += a[length] by 16 columns of b[length]; does not subtract `b_zero_point` times the sum of a */
static inline void mcud_product_all_columns(const mcud_product_s8 *what, const int8_t *a, const int8_t *b,
                                            int32_t length, int32_t sums[16])
{
    const int32_t zero_point = what->a_zero_point;
    const int32_t pitch = what->pitch;
    int32x4_t s0 = vldrwq_s32(sums);
    int32x4_t s1 = vldrwq_s32(sums + 4);
    int32x4_t s2 = vldrwq_s32(sums + 8);
    int32x4_t s3 = vldrwq_s32(sums + 12);
    for (int32_t i = 0; i < length; i++, b += pitch) {
        const int32_t value = a[i] - zero_point;
        s0 = vmlaq_n_s32(s0, vldrbq_s32(b), value);
        s1 = vmlaq_n_s32(s1, vldrbq_s32(b + 4), value);
        s2 = vmlaq_n_s32(s2, vldrbq_s32(b + 8), value);
        s3 = vmlaq_n_s32(s3, vldrbq_s32(b + 12), value);
    }
    vstrwq_s32(sums, s0);
    vstrwq_s32(sums + 4, s1);
    vstrwq_s32(sums + 8, s2);
    vstrwq_s32(sums + 12, s3);
}

/* The same for 1 to 4 columns. */
static inline void mcud_product_some_columns(const mcud_product_s8 *what, const int8_t *a, const int8_t *b,
                                             int32_t length, int32_t columns, int32_t *sums)
{
    const mve_pred16_t some = vctp32q((uint32_t)columns);
    const int32_t pitch = what->pitch;
    int32x4_t s = vldrwq_z_s32(sums, some);
    for (int32_t i = 0; i < length; i++, b += pitch) {
        s = vmlaq_n_s32(s, vldrbq_z_s32(b, some), a[i] - what->a_zero_point);
    }
    vstrwq_p_s32(sums, s, some);
}

/* sums[columns] += a[length] by the columns of b[length], 16 at most */
static inline void mcud_product_columns(const mcud_product_s8 *what, const int8_t *a, const int8_t *b,
                                        int32_t length, int32_t columns, int32_t *sums)
{
    int32_t a_sum = 0;
    for (int32_t i = 0; i < length; i += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)(length - i));
        a_sum = vaddvaq_p_s8(a_sum, vldrbq_z_s8(a + i, some), some);
    }
    const int32_t shared = (a_sum - length * what->a_zero_point) * what->b_zero_point;
    if (columns == 16) {
        mcud_product_all_columns(what, a, b, length, sums);
    } else {
        for (int32_t j = 0; j < columns; j += 4) {
            mcud_product_some_columns(what, a, b + j, length, columns - j, sums + j);
        }
    }
    for (int32_t j = 0; j < columns; j++) {
        sums[j] -= shared;
    }
}

#endif
