/* The steps of mcud_winograd_s8.h for cores with the DSP extension: a lane is two channels, halves of a word. */
#ifndef MCUD_WINOGRAD_DSP_H
#define MCUD_WINOGRAD_DSP_H

#include "mcud_dsp.h"

enum { MCUD_LANES = 2 };

/* Channels 0 and 2 of four, or 1 and 3. */
MCUD_BLOCK int32_t mcud_lane_load(const int8_t *four, int32_t lane)
{
    const int32_t word = mcud_load_word(four);
    return lane == 0 ? mcud_even_bytes(word) : mcud_odd_bytes(word);
}

MCUD_BLOCK int32_t mcud_lane_add(int32_t a, int32_t b)
{
    int32_t sum;
    __asm__("sadd16 %0, %1, %2" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

MCUD_BLOCK int32_t mcud_lane_sub(int32_t a, int32_t b)
{
    int32_t difference;
    __asm__("ssub16 %0, %1, %2" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}

MCUD_BLOCK int32_t mcud_lane_twice(int32_t a)
{
    return mcud_lane_add(a, a);
}

MCUD_BLOCK void mcud_lane_store(int32_t *group, int32_t lane, int32_t value)
{
    group[2 * lane] = value;
}

MCUD_BLOCK int8_t mcud_requantize_shifted(int32_t sum, int32_t multiplier, int32_t zero, int32_t shift)
{
    __asm__("smmla %0, %0, %1, %2" : "+r"(sum) : "r"(multiplier), "r"(zero));
    __asm__("ssat %0, #8, %0, asr %1" : "+r"(sum) : "i"(shift));
    return (int8_t)sum;
}

#if MCUD_BLOCKS

/* 14 instructions for 16 products. Single loads in a row take a cycle less on Cortex-M4 than pairs do.
 * Stack: sums, bytes of a position's weights, positions, the end of the position. */
__attribute__((naked, noinline)) static void
mcud_multiply_tiles(__attribute__((unused)) const int32_t *weights, __attribute__((unused)) const int32_t *tiles,
                    __attribute__((unused)) int32_t *sums, __attribute__((unused)) int32_t pairs,
                    __attribute__((unused)) int32_t positions)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "ldr r4, [sp, #36]\n\t"
        "lsl r3, r3, #4\n\t"
        "add r5, r0, r3\n\t"
        "push {r2, r3, r4, r5}\n\t"
        "0:\n\t"
        "mov r4, #0\n\t"
        "mov r5, #0\n\t"
        "mov r6, #0\n\t"
        "mov r7, #0\n\t"
        "mov r8, #0\n\t"
        "mov r9, #0\n\t"
        "mov r10, #0\n\t"
        "mov r11, #0\n\t"
        "1:\n\t"
        ".rept 2\n\t"
        "ldr r3, [r1, #4]\n\t"
        "ldr r2, [r1], #8\n\t"
        "ldr lr, [r0, #4]\n\t"
        "ldr r12, [r0], #16\n\t"
        "smlad r6, lr, r2, r6\n\t"
        "smlad r7, lr, r3, r7\n\t"
        "smlad r4, r12, r2, r4\n\t"
        "smlad r5, r12, r3, r5\n\t"
        "ldr r12, [r0, #-8]\n\t"
        "ldr lr, [r0, #-4]\n\t"
        "smlad r8, r12, r2, r8\n\t"
        "smlad r9, r12, r3, r9\n\t"
        "smlad r10, lr, r2, r10\n\t"
        "smlad r11, lr, r3, r11\n\t"
        ".endr\n\t"
        "ldr r12, [sp, #12]\n\t"
        "cmp r0, r12\n\t"
        "bne 1b\n\t"
        "ldm sp, {r2, r3, r12}\n\t"
        "stm r2!, {r4-r11}\n\t"
        "add r3, r3, r0\n\t"
        "subs r12, r12, #1\n\t"
        "str r2, [sp]\n\t"
        "str r12, [sp, #8]\n\t"
        "str r3, [sp, #12]\n\t"
        "bne 0b\n\t"
        "add sp, sp, #16\n\t"
        "pop {r4-r11, pc}\n\t");
}

#else

static void mcud_multiply_tiles(const int32_t *weights, const int32_t *tiles, int32_t *sums, int32_t pairs,
                                int32_t positions)
{
    for (; positions > 0; positions--, sums += 8) {
        int32_t s[8] = {0};
        for (int32_t k = 0; k < pairs; k++, weights += 4, tiles += 2) {
            for (int32_t c = 0; c < 4; c++) {
                s[2 * c] = mcud_add_products(weights[c], tiles[0], s[2 * c]);
                s[2 * c + 1] = mcud_add_products(weights[c], tiles[1], s[2 * c + 1]);
            }
        }
        memcpy(sums, s, sizeof s);
    }
}

#endif

#endif
