/* Blocks of four channels for RISC-V, whose registers take 12 sums: one value of three pixels takes 31 instructions for
 * 12 products, instead of 17 for 6. It is assembler because compilers load so far ahead that they put sums on the
 * stack. */
#ifndef MCUD_SIMD_RISCV_H
#define MCUD_SIMD_RISCV_H

/* Weight `at` of the four channels, two in each of two records. */
#define MCUD_FOUR_WEIGHTS(at)                                                                                \
    "lb %[w0], " #at "(%[first])\n\tlb %[w1], 4+" #at "(%[first])\n\t"                                       \
    "lb %[w2], " #at "(%[second])\n\tlb %[w3], 4+" #at "(%[second])\n\t"

/* Adds the products of a pixel's value and these weights. */
#define MCUD_FOUR_PRODUCTS(x, sums)                                                                          \
    "mul %[p], %[" x "], %[w0]\n\tmul %[q], %[" x "], %[w1]\n\t"                                             \
    "add %[" sums "0], %[" sums "0], %[p]\n\tadd %[" sums "1], %[" sums "1], %[q]\n\t"                       \
    "mul %[p], %[" x "], %[w2]\n\tmul %[q], %[" x "], %[w3]\n\t"                                             \
    "add %[" sums "2], %[" sums "2], %[p]\n\tadd %[" sums "3], %[" sums "3], %[q]\n\t"

/* The sums of the first pixel, which start with the biases, and those of another one. */
#define MCUD_FOUR_BIASES                                                                                     \
    "lw %[a0], 0(%[first])\n\tlw %[a1], 4(%[first])\n\tlw %[a2], 0(%[second])\n\tlw %[a3], 4(%[second])\n\t" \
    "addi %[first], %[first], 8\n\taddi %[second], %[second], 8\n\t"
#define MCUD_FOUR_COPIES(sums)                                                                               \
    "mv %[" sums "0], %[a0]\n\tmv %[" sums "1], %[a1]\n\tmv %[" sums "2], %[a2]\n\tmv %[" sums "3], %[a3]\n\t"

/* Advances to the next group, whose pixels are `bytes` bytes later. */
#define MCUD_FOUR_END(bytes)                                                                                 \
    "addi %[first], %[first], 8\n\taddi %[second], %[second], 8\n\t"                                         \
    "addi %[x], %[x], " #bytes "\n\tbltu %[x], %[end], 1b\n\t"

#define MCUD_THREE_VALUES(at, weight)                                                                        \
    "lh %[x0], " #at "(%[x])\n\tlh %[x1], 4+" #at "(%[x])\n\tlh %[x2], 8+" #at "(%[x])\n\t"                  \
    MCUD_FOUR_WEIGHTS(weight) MCUD_FOUR_PRODUCTS("x0", "a") MCUD_FOUR_PRODUCTS("x1", "b") MCUD_FOUR_PRODUCTS("x2", "c")

#define MCUD_TWO_VALUES(at, weight)                                                                          \
    "lh %[x0], " #at "(%[x])\n\tlh %[x1], 4+" #at "(%[x])\n\t"                                               \
    MCUD_FOUR_WEIGHTS(weight) MCUD_FOUR_PRODUCTS("x0", "a") MCUD_FOUR_PRODUCTS("x1", "b")

/* The results of both records; each sum of a record is `pixels` by two. */
static inline void mcud_results_of_both(int32_t *sums, int32_t pixels, const int32_t *first, const int32_t *second,
                                        const mcud_finish_s8 *finish, int8_t *y)
{
    const int32_t *factors = first;
    for (int32_t i = 0; i < 2; i++, sums += 2 * pixels, factors = second, y += 2) {
        mcud_results_of_two(sums, pixels, factors, finish, y);
    }
}

/* Multiplies x[groups] of 3 pixels with a multiple of four channels to y[3][channels], whose pixels are `pitch`
 * apart. */
MCUD_NOINLINE const int32_t *mcud_records_3x4(const int16_t *x, const int16_t *const ends[2], const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y, int32_t channels)
{
    const int32_t words = 2 + (int32_t)(ends[1] - x) / 6 + 2 * MCUD_FACTORS;
    for (const int8_t *const last = y + channels; y < last; y += 4) {
        const int16_t *at = x;
        const int32_t *second = record + words;
        int32_t a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, x0, x1, x2, w0, w1, w2, w3, p, q;
        __asm__ volatile(MCUD_FOUR_BIASES MCUD_FOUR_COPIES("b") MCUD_FOUR_COPIES("c") "\n1:\n\t"
                         MCUD_THREE_VALUES(0, 0) MCUD_THREE_VALUES(12, 1) MCUD_THREE_VALUES(2, 2) MCUD_THREE_VALUES(14, 3)
                         MCUD_FOUR_END(24)
                         : [x] "+r"(at), [first] "+r"(record), [second] "+r"(second), [a0] "=&r"(a0), [a1] "=&r"(a1),
                           [a2] "=&r"(a2), [a3] "=&r"(a3), [b0] "=&r"(b0), [b1] "=&r"(b1), [b2] "=&r"(b2),
                           [b3] "=&r"(b3), [c0] "=&r"(c0), [c1] "=&r"(c1), [c2] "=&r"(c2), [c3] "=&r"(c3),
                           [x0] "=&r"(x0), [x1] "=&r"(x1), [x2] "=&r"(x2), [w0] "=&r"(w0), [w1] "=&r"(w1),
                           [w2] "=&r"(w2), [w3] "=&r"(w3), [p] "=&r"(p), [q] "=&r"(q)
                         : [end] "r"(ends[1])
                         : "memory");
        int32_t sums[12] = {a0, a1, b0, b1, c0, c1, a2, a3, b2, b3, c2, c3};
        mcud_results_of_both(sums, 3, record, second, finish, y);
        record = second + 2 * MCUD_FACTORS;
    }
    return record;
}

/* The same for 2 pixels. */
MCUD_NOINLINE const int32_t *mcud_records_2x4(const int16_t *x, const int16_t *const ends[2], const int32_t *record,
                                              const mcud_finish_s8 *finish, int8_t *y, int32_t channels)
{
    const int32_t words = 2 + (int32_t)(ends[1] - x) / 4 + 2 * MCUD_FACTORS;
    for (const int8_t *const last = y + channels; y < last; y += 4) {
        const int16_t *at = x;
        const int32_t *second = record + words;
        int32_t a0, a1, a2, a3, b0, b1, b2, b3, x0, x1, w0, w1, w2, w3, p, q;
        __asm__ volatile(MCUD_FOUR_BIASES MCUD_FOUR_COPIES("b") "\n1:\n\t"
                         MCUD_TWO_VALUES(0, 0) MCUD_TWO_VALUES(8, 1) MCUD_TWO_VALUES(2, 2) MCUD_TWO_VALUES(10, 3)
                         MCUD_FOUR_END(16)
                         : [x] "+r"(at), [first] "+r"(record), [second] "+r"(second), [a0] "=&r"(a0), [a1] "=&r"(a1),
                           [a2] "=&r"(a2), [a3] "=&r"(a3), [b0] "=&r"(b0), [b1] "=&r"(b1), [b2] "=&r"(b2),
                           [b3] "=&r"(b3), [x0] "=&r"(x0), [x1] "=&r"(x1), [w0] "=&r"(w0), [w1] "=&r"(w1),
                           [w2] "=&r"(w2), [w3] "=&r"(w3), [p] "=&r"(p), [q] "=&r"(q)
                         : [end] "r"(ends[1])
                         : "memory");
        int32_t sums[8] = {a0, a1, b0, b1, a2, a3, b2, b3};
        mcud_results_of_both(sums, 2, record, second, finish, y);
        record = second + 2 * MCUD_FACTORS;
    }
    return record;
}

#endif
