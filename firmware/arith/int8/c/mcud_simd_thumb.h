/* The blocks of mcud_simd_c.h that multiply most, for cores with the instructions of a Cortex-M0: a sum can be in a
 * high register, which only additions reach, so that the eight low registers are free. Every product is three
 * instructions, extension, multiplication, addition: the multiplication overwrites the extended value. */
#ifndef MCUD_SIMD_THUMB_H
#define MCUD_SIMD_THUMB_H

/* The weight in r6 by the lower or the upper half of x, in r7. */
#define MCUD_LOW(x, sum) "sxth r7, " x "\n\t" "muls r7, r6\n\t" "add " sum ", r7\n\t"
#define MCUD_HIGH(x, sum) "asrs r7, " x ", #16\n\t" "muls r7, r6\n\t" "add " sum ", r7\n\t"

/* Weight 0, 1, 2 or 3 of the word w, to r6. */
#define MCUD_WEIGHT_0(w) "sxtb r6, " w "\n\t"
#define MCUD_WEIGHT_1(w) "lsls r6, " w ", #16\n\t" "asrs r6, r6, #24\n\t"
#define MCUD_WEIGHT_2(w) "lsls r6, " w ", #8\n\t" "asrs r6, r6, #24\n\t"
#define MCUD_WEIGHT_3(w) "asrs r6, " w ", #24\n\t"

/* Three pixels by two of one channel's weights, in r5; their values are the halves of r2, r3 and r4. */
#define MCUD_THREE(low, high, a, b, c)                                                                       \
    low("r5") MCUD_LOW("r2", a) MCUD_LOW("r3", b) MCUD_LOW("r4", c)                                          \
    high("r5") MCUD_HIGH("r2", a) MCUD_HIGH("r3", b) MCUD_HIGH("r4", c)

/* Multiplies x[groups] of 3 pixels to y[3][2], whose pixels are `pitch` apart: 94 instructions for 24 products. */
MCUD_NOINLINE const int32_t *mcud_record_3x2(const int16_t *x, const int16_t *const ends[2],
                                             const int32_t *record, const mcud_finish_s8 *finish, int8_t *y)
{
    const int16_t *const end = ends[1];
    int32_t sums[6];
    __asm__ volatile(
        ".syntax unified\n\t"
        "ldmia %[w]!, {r2, r3}\n\t"
        "mov r8, r2\n\t"
        "mov r9, r3\n\t"
        "mov r10, r2\n\t"
        "mov r11, r3\n\t"
        "mov r12, r2\n\t"
        "mov lr, r3\n"
        "1:\n\t"
        "ldmia %[x]!, {r2, r3, r4}\n\t"
        "ldr r5, [%[w]]\n\t"
        MCUD_THREE(MCUD_WEIGHT_0, MCUD_WEIGHT_2, "r8", "r10", "r12")
        "ldr r5, [%[w], #4]\n\t"
        MCUD_THREE(MCUD_WEIGHT_0, MCUD_WEIGHT_2, "r9", "r11", "lr")
        "ldmia %[x]!, {r2, r3, r4}\n\t"
        MCUD_THREE(MCUD_WEIGHT_1, MCUD_WEIGHT_3, "r9", "r11", "lr")
        "ldr r5, [%[w]]\n\t"
        MCUD_THREE(MCUD_WEIGHT_1, MCUD_WEIGHT_3, "r8", "r10", "r12")
        "adds %[w], #8\n\t"
        "ldr r7, %[end]\n\t"
        "cmp %[x], r7\n\t"
        "bcc 1b\n\t"
        "mov r2, r8\n\t"
        "mov r3, r9\n\t"
        "mov r4, r10\n\t"
        "mov r5, r11\n\t"
        "mov r6, r12\n\t"
        "mov r7, lr\n\t"
        "str r2, %[a]\n\t"
        "str r3, %[b]\n\t"
        "str r4, %[c]\n\t"
        "str r5, %[d]\n\t"
        "str r6, %[e]\n\t"
        "str r7, %[f]\n\t"
        : [x] "+l"(x), [w] "+l"(record), [a] "=m"(sums[0]), [b] "=m"(sums[1]), [c] "=m"(sums[2]),
          [d] "=m"(sums[3]), [e] "=m"(sums[4]), [f] "=m"(sums[5])
        : [end] "m"(end)
        : "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
    mcud_results_of_two(sums, 3, record, finish, y);
    return record + 2 * MCUD_FACTORS;
}

/* Two pixels by two weights of the word w; their values are the halves of r2 and r3. */
#define MCUD_TWO(low, high, w, a, b)                                                                         \
    low(w) MCUD_LOW("r2", a) MCUD_LOW("r3", b) high(w) MCUD_HIGH("r2", a) MCUD_HIGH("r3", b)

/* Multiplies x[groups] of 2 pixels to y[2][2]: 65 instructions for 16 products. */
MCUD_NOINLINE const int32_t *mcud_record_2x2(const int16_t *x, const int16_t *const ends[2],
                                             const int32_t *record, const mcud_finish_s8 *finish, int8_t *y)
{
    const int16_t *const end = ends[1];
    int32_t sums[4];
    __asm__ volatile(
        ".syntax unified\n\t"
        "ldr r2, %[end]\n\t"
        "mov r12, r2\n\t"
        "ldmia %[w]!, {r2, r3}\n\t"
        "mov r8, r2\n\t"
        "mov r9, r3\n\t"
        "mov r10, r2\n\t"
        "mov r11, r3\n"
        "1:\n\t"
        "ldmia %[x]!, {r2, r3}\n\t"
        "ldmia %[w]!, {r4, r5}\n\t"
        MCUD_TWO(MCUD_WEIGHT_0, MCUD_WEIGHT_2, "r4", "r8", "r10")
        MCUD_TWO(MCUD_WEIGHT_0, MCUD_WEIGHT_2, "r5", "r9", "r11")
        "ldmia %[x]!, {r2, r3}\n\t"
        MCUD_TWO(MCUD_WEIGHT_1, MCUD_WEIGHT_3, "r4", "r8", "r10")
        MCUD_TWO(MCUD_WEIGHT_1, MCUD_WEIGHT_3, "r5", "r9", "r11")
        "cmp %[x], r12\n\t"
        "bcc 1b\n\t"
        "mov r2, r8\n\t"
        "mov r3, r9\n\t"
        "mov r4, r10\n\t"
        "mov r5, r11\n\t"
        "str r2, %[a]\n\t"
        "str r3, %[b]\n\t"
        "str r4, %[c]\n\t"
        "str r5, %[d]\n\t"
        : [x] "+l"(x), [w] "+l"(record), [a] "=m"(sums[0]), [b] "=m"(sums[1]), [c] "=m"(sums[2]),
          [d] "=m"(sums[3])
        : [end] "m"(end)
        : "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
    mcud_results_of_two(sums, 2, record, finish, y);
    return record + 2 * MCUD_FACTORS;
}

/* Four values, in r2 to r5, by the weights of one channel in the word w: 15 instructions. */
#define MCUD_ONE(w, sum)                                                                                     \
    "ldr r6, [%[w], #" #w "]\n\t"                                                                            \
    "sxtb r7, r6\n\tmuls r7, r2\n\tadd " sum ", r7\n\t"                                                     \
    "lsls r7, r6, #16\n\tasrs r7, r7, #24\n\tmuls r7, r3\n\tadd " sum ", r7\n\t"                            \
    "lsls r7, r6, #8\n\tasrs r7, r7, #24\n\tmuls r7, r4\n\tadd " sum ", r7\n\t"                             \
    "asrs r7, r6, #24\n\tmuls r7, r5\n\tadd " sum ", r7\n\t"

/* Adds the products of x[groups][4] and w[groups][4][4]: 72 instructions for 16 products. A pixel may be at any
 * address, so its bytes are loaded singly. */
#define MCUD_SUM_1X4
MCUD_NOINLINE void mcud_sum_1x4(const int8_t *x, const int8_t *const ends[2], const int32_t *w, int32_t sums[4])
{
    const int8_t *const end = ends[1];
    int32_t *const to = sums;
    if (x >= end) {
        return;
    }
    __asm__ volatile(
        ".syntax unified\n\t"
        "ldr r2, %[end]\n\tmov r12, r2\n\tldr r7, %[to]\n\tldmia r7!, {r2, r3, r4, r5}\n\t"
        "mov r8, r2\n\tmov r9, r3\n\tmov r10, r4\n\tmov r11, r5\n"
        "1:\n\t"
        "ldrb r2, [%[x], #0]\n\tsxtb r2, r2\n\tldrb r3, [%[x], #1]\n\tsxtb r3, r3\n\t"
        "ldrb r4, [%[x], #2]\n\tsxtb r4, r4\n\tldrb r5, [%[x], #3]\n\tsxtb r5, r5\n\t"
        MCUD_ONE(0, "r8") MCUD_ONE(4, "r9") MCUD_ONE(8, "r10") MCUD_ONE(12, "r11")
        "adds %[w], #16\n\tadds %[x], #4\n\tcmp %[x], r12\n\tbcc 1b\n\t"
        "ldr r7, %[to]\n\tmov r2, r8\n\tmov r3, r9\n\tmov r4, r10\n\tmov r5, r11\n\tstmia r7!, {r2, r3, r4, r5}\n\t"
        : [x] "+l"(x), [w] "+l"(w)
        : [end] "m"(end), [to] "m"(to)
        : "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
}

#endif
