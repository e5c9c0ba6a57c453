/* Windows of 3x3 of four int8 channels, column by column.
 *
 * An expanded column is 6 words of two 16-bit values: of each channel the values of the upper two rows, then those of
 * the lowest row of channels 0 and 2, and of channels 1 and 3. A record is 4 biases, the weights of 3 columns in the
 * same order, 4 multipliers.
 */
#ifndef MCUD_COLUMNS_S8_H
#define MCUD_COLUMNS_S8_H

#include <string.h>

#include "mcud_simd.h"

enum { MCUD_COLUMN_WORDS = 6, MCUD_COLUMN_RECORD = 4 + 3 * MCUD_COLUMN_WORDS + 4 };

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)

/* Four channels of three rows, a byte each, to a column; returns the place after it. */
static inline int32_t *mcud_expand_column(int32_t *to, int32_t upper, int32_t middle, int32_t lower)
{
    int32_t first;
    int32_t last;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(first) : "r"(upper), "r"(middle));
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(last) : "r"(middle), "r"(upper));
    __asm__ volatile("strd %1, %2, [%0], #8\n\t"
                     "strd %3, %4, [%0], #8\n\t"
                     "strd %5, %6, [%0], #8\n\t"
                     : "+r"(to)
                     : "r"(mcud_even_bytes(first)), "r"(mcud_odd_bytes(first)), "r"(mcud_even_bytes(last)),
                       "r"(mcud_odd_bytes(last)), "r"(mcud_even_bytes(lower)), "r"(mcud_odd_bytes(lower))
                     : "memory");
    return to;
}

#if MCUD_BLOCKS

#define MCUD_COLUMN                                                                                          \
    "ldrd %[x0], %[x1], [%[x]], #8\n\t"                                                                      \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "smlad %[a], %[x0], %[w0], %[a]\n\t"                                                                     \
    "smlad %[b], %[x1], %[w1], %[b]\n\t"                                                                     \
    "ldrd %[x0], %[x1], [%[x]], #8\n\t"                                                                      \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "smlad %[c], %[x0], %[w0], %[c]\n\t"                                                                     \
    "smlad %[d], %[x1], %[w1], %[d]\n\t"                                                                     \
    "ldrd %[x0], %[x1], [%[x]], #8\n\t"                                                                      \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                      \
    "smlabb %[a], %[x0], %[w0], %[a]\n\t"                                                                    \
    "smlatt %[c], %[x0], %[w0], %[c]\n\t"                                                                    \
    "smlabb %[b], %[x1], %[w1], %[b]\n\t"                                                                    \
    "smlatt %[d], %[x1], %[w1], %[d]\n\t"

#define MCUD_SHIFT_SUMS                                                                                      \
    "ldr %[t], " MCUD_LEFT "\n\t"                                                                             \
    "5:\n\t"                                                                                                 \
    "qadd %[a], %[a], %[a]\n\t"                                                                             \
    "qadd %[b], %[b], %[b]\n\t"                                                                             \
    "qadd %[c], %[c], %[c]\n\t"                                                                             \
    "qadd %[d], %[d], %[d]\n\t"                                                                             \
    "subs %[t], %[t], #1\n\t"                                                                               \
    "bne 5b\n\t"

#if defined(__clang__)
#define MCUD_COLUMNS_OPERANDS
#else
#define MCUD_COLUMNS_OPERANDS                                                                                \
    [finish] "m"(finish->zero_point), [left] "m"(finish->left), [pitch] "m"(finish->pitch), [first] "m"(back)
#endif

#define MCUD_COLUMNS(shift)                                                                                  \
    __asm__ volatile(MCUD_ENTER("t", "x0", "x1")                                                             \
                     "1:\n\t"                                                                               \
                     "ldrd %[a], %[b], [%[w]], #8\n\t"                                                      \
                     "ldrd %[c], %[d], [%[w]], #8\n\t" MCUD_COLUMN MCUD_COLUMN MCUD_COLUMN                  \
                     "ldrd %[w0], %[w1], [%[w], #8]\n\t"                                                    \
                     "ldrd %[x0], %[x1], [%[w]], #-88\n\t" shift                                            \
                     "ldr %[t], " MCUD_FINISH "\n\t"                                                                \
                     "smmlar %[a], %[a], %[x0], %[t]\n\t"                                                   \
                     "smmlar %[b], %[b], %[x1], %[t]\n\t"                                                   \
                     "smmlar %[c], %[c], %[w0], %[t]\n\t"                                                   \
                     "smmlar %[d], %[d], %[w1], %[t]\n\t"                                                   \
                     "ldr %[t], " MCUD_PITCH "\n\t"                                                               \
                     "ssat %[a], #8, %[a]\n\t"                                                              \
                     "ssat %[b], #8, %[b]\n\t"                                                              \
                     "ssat %[c], #8, %[c]\n\t"                                                              \
                     "ssat %[d], #8, %[d]\n\t"                                                              \
                     "strb %[a], [%[y]]\n\t"                                                                \
                     "strb %[b], [%[y], #1]\n\t"                                                            \
                     "strb %[c], [%[y], #2]\n\t"                                                            \
                     "strb %[d], [%[y], #3]\n\t"                                                            \
                     "add %[y], %[y], %[t]\n\t"                                                             \
                     "ldr %[t], " MCUD_FIRST "\n\t"                                                                \
                     "sub %[x], %[x], %[t]\n\t"                                                             \
                     "subs %[n], %[n], #1\n\t"                                                              \
                     "bne 1b\n\t" MCUD_LEAVE                                                                \
                     : [x] "+r"(columns), [w] "+r"(record), [y] "+r"(y), [n] "+r"(count), [a] "=&r"(a),      \
                       [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [x0] "=&r"(x0), [x1] "=&r"(x1),             \
                       [w0] "=&r"(w0), [w1] "=&r"(w1), [t] MCUD_AT(t)                                          \
                     : MCUD_COLUMNS_OPERANDS                                                                \
                     : "cc", "memory")

/* `count` outputs, at least one, of four channels; each one's three columns begin `step` columns after those of the
 * one before. They are finish->pitch bytes apart. */
MCUD_BLOCK void mcud_columns_s8(const int32_t *columns, int32_t step, const int32_t *record, int32_t count,
                                const mcud_finish_s8 *finish, int8_t *y)
{
    const int32_t back = (3 - step) * MCUD_COLUMN_WORDS * 4;
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;
    int32_t x0;
    int32_t x1;
    int32_t w0;
    int32_t w1;
    int32_t t;
#if defined(__clang__)
    MCUD_FRAME(0, 0, back, 0, finish, 0);
    t = (int32_t)frame;
#endif
    if (finish->left == 0) {
        MCUD_COLUMNS("");
    } else {
        MCUD_COLUMNS(MCUD_SHIFT_SUMS);
    }
}

#else

/* The same in C; see mcud_compiler.h. */
static inline void mcud_columns_s8(const int32_t *columns, int32_t step, const int32_t *record, int32_t count,
                                   const mcud_finish_s8 *finish, int8_t *y)
{
    const mcud_finish_s8 by = *finish; /* a store to y may not change it */
    for (; count > 0; count--, columns += step * MCUD_COLUMN_WORDS, y += by.pitch) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        const int32_t *x = columns;
        const int32_t *w = record + 4;
        for (int32_t column = 0; column < 3; column++, x += MCUD_COLUMN_WORDS, w += MCUD_COLUMN_WORDS) {
            for (int32_t i = 0; i < 4; i++) {
                sums[i] = mcud_add_products(x[i], w[i], sums[i]);
            }
            sums[0] = mcud_add_lower_product(x[4], w[4], sums[0]);
            sums[2] = mcud_add_upper_product(x[4], w[4], sums[2]);
            sums[1] = mcud_add_lower_product(x[5], w[5], sums[1]);
            sums[3] = mcud_add_upper_product(x[5], w[5], sums[3]);
        }
        for (int32_t i = 0; i < 4; i++) {
            y[i] = mcud_requantize_s8(sums[i], w[i], &by);
        }
    }
}

#endif

#else

static inline int32_t *mcud_expand_column(int32_t *to, int32_t upper, int32_t middle, int32_t lower)
{
    const int32_t rows[3] = {upper, middle, lower};
    int8_t x[3][4];
    memcpy(x, rows, sizeof x);
    int16_t *const values = (int16_t *)(void *)to;
    for (int32_t i = 0; i < 4; i++) {
        values[2 * i] = x[0][i];
        values[2 * i + 1] = x[1][i];
        values[8 + i % 2 * 2 + i / 2] = x[2][i];
    }
    return to + MCUD_COLUMN_WORDS;
}

static inline void mcud_columns_s8(const int32_t *columns, int32_t step, const int32_t *record, int32_t count,
                                   const mcud_finish_s8 *finish, int8_t *y)
{
    const int32_t *const multipliers = record + 4 + 3 * MCUD_COLUMN_WORDS;
    for (; count > 0; count--, columns += step * MCUD_COLUMN_WORDS, y += finish->pitch) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        const int16_t *x = (const int16_t *)(const void *)columns;
        const int16_t *w = (const int16_t *)(const void *)(record + 4);
        for (int32_t column = 0; column < 3; column++, x += 12, w += 12) {
            for (int32_t i = 0; i < 4; i++) {
                const int32_t lower = 8 + i % 2 * 2 + i / 2;
                sums[i] += x[2 * i] * w[2 * i] + x[2 * i + 1] * w[2 * i + 1] + x[lower] * w[lower];
            }
        }
        for (int32_t i = 0; i < 4; i++) {
            y[i] = mcud_requantize_s8(sums[i], multipliers[i], finish);
        }
    }
}

#endif
#endif
