/* The blocks of mcud_s4w.c for Arm cores with the DSP extension.
 *
 * They take all registers but the stack pointer, so the functions are assembler alone. Single loads in a row take a
 * cycle less on Cortex-M4 than pairs do; no load needs the address that the one before it writes. The first turn begins
 * in the middle if there are fewer words. A pixel's sums are those with whole halves, with even nibbles, with lower
 * bytes, and with nibbles 0. */
#ifndef MCUD_S4W_DSP_H
#define MCUD_S4W_DSP_H

enum { MCUD_S4W_ONES = 0x10001 };

static inline void mcud_s4w_sum_pairs(const int16_t *x, mcud_s4w_block *by)
{
    const int32_t *pairs = (const int32_t *)(const void *)x;
    int32_t first = 0;
    int32_t second = 0;
    for (const int32_t *const end = pairs + 2 * by->pairs; pairs < end; pairs += 2) {
        first = mcud_add_products(pairs[0], MCUD_S4W_ONES, first);
        second = mcud_add_products(pairs[1], MCUD_S4W_ONES, second);
    }
    by->less[0] = -8 * first;
    by->less[1] = -8 * second;
}

static inline void mcud_s4w_sum_values(const int8_t *x, mcud_s4w_block *by)
{
    int32_t sum = 0;
    for (const int8_t *const end = x + 2 * by->pairs; x < end; x += 4) {
        const int32_t word = mcud_load_word(x);
        sum = mcud_add_products(mcud_even_bytes(word), MCUD_S4W_ONES, sum);
        sum = mcud_add_products(mcud_odd_bytes(word), MCUD_S4W_ONES, sum);
    }
    by->less[0] = -8 * sum;
}

/* Sums to those of four channels, in the order of whole halves, even nibbles, lower bytes and nibbles 0; `less` has -8
 * times the sum of the values, `bias` those of channels 1, 2 and 3. */
#define MCUD_S4W_APART(halves, evens, bytes, zeros, less, bias1, bias2, bias3)                               \
    "sub " bytes ", " bytes ", " zeros "\n\t"                                                                \
    "sub " halves ", " halves ", " evens "\n\t"                                                              \
    "sub " evens ", " evens ", " zeros "\n\t"                                                                \
    "sub " halves ", " halves ", " bytes "\n\t"                                                              \
    "add " zeros ", " zeros ", " less "\n\t"                                                                 \
    "add " bytes ", " less ", " bytes ", asr #4\n\t"                                                         \
    "add " evens ", " less ", " evens ", asr #8\n\t"                                                         \
    "add " halves ", " bias3 ", " halves ", asr #12\n\t"                                                     \
    "add " bytes ", " bytes ", " bias1 "\n\t"                                                                \
    "add " evens ", " evens ", " bias2 "\n\t"

/* The products of four channels and their factors are added to `to`, or to the sums themselves. */
#define MCUD_S4W_SCALE(halves, evens, bytes, zeros, to)                                                      \
    "smmlar " zeros ", " zeros ", r12, " to "\n\t"                                                           \
    "smmlar " bytes ", " bytes ", r2, " to "\n\t"                                                            \
    "smmlar " evens ", " evens ", r3, " to "\n\t"                                                            \
    "smmlar " halves ", " halves ", lr, " to "\n\t"
#define MCUD_S4W_SCALE_SAME(halves, evens, bytes, zeros)                                                     \
    "smmlar " zeros ", " zeros ", r12, " zeros "\n\t"                                                        \
    "smmlar " bytes ", " bytes ", r2, " bytes "\n\t"                                                         \
    "smmlar " evens ", " evens ", r3, " evens "\n\t"                                                         \
    "smmlar " halves ", " halves ", lr, " halves "\n\t"
#define MCUD_S4W_DOUBLE(halves, evens, bytes, zeros)                                                         \
    "qadd " zeros ", " zeros ", " zeros "\n\t"                                                               \
    "qadd " bytes ", " bytes ", " bytes "\n\t"                                                               \
    "qadd " evens ", " evens ", " evens "\n\t"                                                               \
    "qadd " halves ", " halves ", " halves "\n\t"
#define MCUD_S4W_FACTORS                                                                                     \
    "ldr r2, [r1, #4]\n\t"                                                                                   \
    "ldr r3, [r1, #8]\n\t"                                                                                   \
    "ldr lr, [r1, #12]\n\t"                                                                                  \
    "ldr r12, [r1], #16\n\t"
#define MCUD_S4W_STORE(halves, evens, bytes, zeros, y)                                                       \
    "ssat " zeros ", #8, " zeros "\n\t"                                                                      \
    "ssat " bytes ", #8, " bytes "\n\t"                                                                      \
    "ssat " evens ", #8, " evens "\n\t"                                                                      \
    "ssat " halves ", #8, " halves "\n\t"                                                                    \
    "strb " zeros ", [" y "], #1\n\t"                                                                        \
    "strb " bytes ", [" y "], #1\n\t"                                                                        \
    "strb " evens ", [" y "], #1\n\t"                                                                        \
    "strb " halves ", [" y "], #1\n\t"

/* A pair of values of two pixels: 14 instructions for 16 products. Stack: x, y, zero point, pitch, the end of y, what
 * both pixels have less, doublings, the end of x, where the first turn begins. */
MCUD_NAKED static void mcud_s4w_2x4(MCUD_UNUSED const int16_t *x, MCUD_UNUSED const int32_t *record,
                                    MCUD_UNUSED int8_t *y, MCUD_UNUSED const mcud_s4w_block *by)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "ldm r3, {r4-r10}\n\t"
        "add r6, r6, r2\n\t"
        "add r11, r0, r7, lsl #3\n\t"
        "rsb r12, r7, #0\n\t"
        "and r12, r12, #7\n\t"
        "mov r7, #56\n\t"
        "adr r3, 1f\n\t"
        "mla r12, r12, r7, r3\n\t"
        "push {r0, r2, r4-r6, r8-r12}\n\t"
        "0:\n\t"
        "ldr r2, [sp, #36]\n\t"
        "movs r4, #0\n\t"
        "movs r5, #0\n\t"
        "movs r6, #0\n\t"
        "movs r7, #0\n\t"
        "mov r8, #0\n\t"
        "mov r9, #0\n\t"
        "mov r10, #0\n\t"
        "mov r11, #0\n\t"
        "mov pc, r2\n\t"
        ".p2align 2\n\t"
        "1:\n\t"
        ".rept 8\n\t"
        "ldr.w lr, [r0, #4]\n\t"
        "ldr.w r12, [r0], #8\n\t"
        "ldr.w r2, [r1], #4\n\t"
        "uxtb16 r3, r2\n\t"
        "smlad r4, r12, r2, r4\n\t"
        "smlad r8, lr, r2, r8\n\t"
        "and r2, r2, #0x0F0F0F0F\n\t"
        "smlad r6, r12, r3, r6\n\t"
        "smlad r10, lr, r3, r10\n\t"
        "uxtb16 r3, r2\n\t"
        "smlad r5, r12, r2, r5\n\t"
        "smlad r9, lr, r2, r9\n\t"
        "smlad r7, r12, r3, r7\n\t"
        "smlad r11, lr, r3, r11\n\t"
        ".endr\n\t"
        "ldr r2, [sp, #32]\n\t"
        "cmp r0, r2\n\t"
        "bne 1b\n\t"
        "ldr r2, [r1, #4]\n\t"
        "ldr r3, [r1, #8]\n\t"
        "ldr lr, [r1, #12]\n\t"
        "ldr r0, [sp, #20]\n\t"
        "ldr r12, [sp, #24]\n\t"
        MCUD_S4W_APART("r4", "r5", "r6", "r7", "r0", "r2", "r3", "lr")
        MCUD_S4W_APART("r8", "r9", "r10", "r11", "r12", "r2", "r3", "lr")
        "ldr r0, [r1], #16\n\t"
        MCUD_S4W_FACTORS
        "add r7, r7, r0\n\t"
        "add r11, r11, r0\n\t"
        MCUD_IF_TWICE(
        MCUD_S4W_SCALE_SAME("r4", "r5", "r6", "r7")
        MCUD_S4W_SCALE_SAME("r8", "r9", "r10", "r11")
        MCUD_S4W_FACTORS)
        "ldr r0, [sp, #28]\n\t"
        "cbz r0, 6f\n"
        "5:\n\t"
        MCUD_S4W_DOUBLE("r4", "r5", "r6", "r7")
        MCUD_S4W_DOUBLE("r8", "r9", "r10", "r11")
        "subs r0, r0, #1\n\t"
        "bne 5b\n"
        "6:\n\t"
        "ldr r0, [sp, #8]\n\t"
        MCUD_S4W_SCALE("r4", "r5", "r6", "r7", "r0")
        MCUD_S4W_SCALE("r8", "r9", "r10", "r11", "r0")
        "ldr r3, [sp, #12]\n\t"
        "ldr r2, [sp, #4]\n\t"
        "ldr r12, [sp, #16]\n\t"
        "ldr r0, [sp]\n\t"
        "add r3, r3, r2\n\t"
        MCUD_S4W_STORE("r4", "r5", "r6", "r7", "r2")
        MCUD_S4W_STORE("r8", "r9", "r10", "r11", "r3")
        "str r2, [sp, #4]\n\t"
        "cmp r2, r12\n\t"
        "bne 0b\n\t"
        "add sp, sp, #40\n\t"
        "pop {r4-r11, pc}\n\t");
}

/* Products of the pair of values in `x` and the word `w`. */
#define MCUD_S4W_WORD(x, w)                                                                                  \
    "uxtb16 r11, " w "\n\t"                                                                                  \
    "smlad r4, " x ", " w ", r4\n\t"                                                                         \
    "and " w ", " w ", #0x0F0F0F0F\n\t"                                                                      \
    "smlad r6, " x ", r11, r6\n\t"                                                                           \
    "uxtb16 r11, " w "\n\t"                                                                                  \
    "smlad r5, " x ", " w ", r5\n\t"                                                                         \
    "smlad r7, " x ", r11, r7\n\t"
#define MCUD_S4W_GROUP(x, even, odd)                                                                         \
    "sxtb16 r10, " x "\n\t"                                                                                  \
    "sxtb16 " x ", " x ", ror #8\n\t"                                                                        \
    MCUD_S4W_WORD("r10", even)                                                                               \
    MCUD_S4W_WORD(x, odd)

/* A pixel, read in place: 38 instructions for 32 products, of two groups. Stack: x, y, zero point, the end of y, what
 * the pixel has less, doublings, the end of x, where the first turn begins, and where to go before it. */
MCUD_NAKED static const int32_t *mcud_s4w_1x4(MCUD_UNUSED const int8_t *x, MCUD_UNUSED const int32_t *record,
                                              MCUD_UNUSED int8_t *y, MCUD_UNUSED const mcud_s4w_block *by)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "ldm r3, {r4-r10}\n\t"
        "add r6, r6, r2\n\t"
        "add r11, r0, r7, lsl #1\n\t"
        "lsrs r3, r7, #2\n\t" /* two groups; carry: one more */
        "rsb r3, r3, #0\n\t"
        "and r3, r3, #3\n\t" /* the first turn lacks this number of them, of 152 bytes */
        "mov r9, #152\n\t"
        "adr r12, 1f\n\t"
        "mla r12, r3, r9, r12\n\t"
        "tst r7, #2\n\t"
        "adr lr, 3f\n\t"
        "it eq\n\t"
        "moveq lr, r12\n\t"
        "push {r0, r2, r4, r6, r8, r10-r12, lr}\n\t"
        "0:\n\t"
        "ldr r2, [sp, #32]\n\t"
        "movs r4, #0\n\t"
        "movs r5, #0\n\t"
        "movs r6, #0\n\t"
        "movs r7, #0\n\t"
        "mov pc, r2\n\t"
        ".p2align 2\n\t"
        "3:\n\t"
        "ldr r9, [r1, #4]\n\t"
        "ldr r8, [r1], #8\n\t"
        "ldr r2, [r0], #4\n\t"
        "ldr r12, [sp, #28]\n\t"
        "ldr r3, [sp, #24]\n\t"
        MCUD_S4W_GROUP("r2", "r8", "r9")
        "cmp r0, r3\n\t"
        "beq 2f\n\t"
        "mov pc, r12\n\t"
        ".p2align 2\n\t"
        "1:\n\t"
        ".rept 4\n\t"
        "ldr.w r9, [r1, #4]\n\t"
        "ldr.w r12, [r1, #8]\n\t"
        "ldr.w lr, [r1, #12]\n\t"
        "ldr.w r8, [r1], #16\n\t"
        "ldr.w r3, [r0, #4]\n\t"
        "ldr.w r2, [r0], #8\n\t"
        MCUD_S4W_GROUP("r2", "r8", "r9")
        MCUD_S4W_GROUP("r3", "r12", "lr")
        ".endr\n\t"
        "ldr r2, [sp, #24]\n\t"
        "cmp r0, r2\n\t"
        "bne 1b\n\t"
        "2:\n\t"
        "ldr r2, [r1, #4]\n\t"
        "ldr r3, [r1, #8]\n\t"
        "ldr lr, [r1, #12]\n\t"
        "ldr r0, [sp, #16]\n\t"
        MCUD_S4W_APART("r4", "r5", "r6", "r7", "r0", "r2", "r3", "lr")
        "ldr r0, [r1], #16\n\t"
        MCUD_S4W_FACTORS
        "add r7, r7, r0\n\t"
        MCUD_IF_TWICE(
        MCUD_S4W_SCALE_SAME("r4", "r5", "r6", "r7")
        MCUD_S4W_FACTORS)
        "ldr r0, [sp, #20]\n\t"
        "cbz r0, 6f\n"
        "5:\n\t"
        MCUD_S4W_DOUBLE("r4", "r5", "r6", "r7")
        "subs r0, r0, #1\n\t"
        "bne 5b\n"
        "6:\n\t"
        "ldr r0, [sp, #8]\n\t"
        MCUD_S4W_SCALE("r4", "r5", "r6", "r7", "r0")
        "ldr r2, [sp, #4]\n\t"
        "ldr r3, [sp, #12]\n\t"
        "ldr r0, [sp]\n\t"
        MCUD_S4W_STORE("r4", "r5", "r6", "r7", "r2")
        "str r2, [sp, #4]\n\t"
        "cmp r2, r3\n\t"
        "bne 0b\n\t"
        "mov r0, r1\n\t"
        "add sp, sp, #36\n\t"
        "pop {r4-r11, pc}\n\t");
}

#endif
