/* Functions that the DSP extension of Arm cores does in an instruction or two, and loops around blocks of them.
 *
 * Blocks use all 13 registers that a compiler can give, so none is left for an address. They read the stack only
 * through variables of the function that contains them, which is therefore always inlined. */
#ifndef MCUD_DSP_H
#define MCUD_DSP_H

#include <string.h>

#include "mcud_compiler.h"
#include "mcud_quant.h"

#define MCUD_BLOCK __attribute__((always_inline)) static inline

typedef struct {
    int8_t bytes[4];
} mcud_four_bytes;

/* Converts a sum to a result; see mcud_finish_s8. */
static inline int8_t mcud_requantize_s8(int32_t sum, int32_t multiplier, const mcud_finish_s8 *finish)
{
    for (int32_t left = finish->left; left > 0; left--) {
        __asm__("qadd %0, %0, %0" : "+r"(sum));
    }
    __asm__("smmlar %0, %0, %1, %2" : "+r"(sum) : "r"(multiplier), "r"(finish->zero_point));
    __asm__("ssat %0, #8, %0" : "+r"(sum));
    return (int8_t)sum;
}

/* The first step of a sum that is rounded twice. */
static inline int32_t mcud_scale_once(int32_t sum, int32_t multiplier)
{
    __asm__("smmlar %0, %0, %1, %0" : "+r"(sum) : "r"(multiplier));
    return sum;
}

/* clamp(value, -128, 127) */
static inline int8_t mcud_saturate_s8(int32_t value)
{
    __asm__("ssat %0, #8, %0" : "+r"(value));
    return (int8_t)value;
}

/* Bytes 0 and 2, sign-extended to 16 bits. */
static inline int32_t mcud_even_bytes(int32_t word)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
    return pair;
}

/* Bytes 1 and 3, sign-extended to 16 bits. */
static inline int32_t mcud_odd_bytes(int32_t word)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* Adds bytes 0 and 2 to the halves of sums. */
static inline int32_t mcud_add_even_bytes(int32_t sums, int32_t word)
{
    int32_t result;
    __asm__("sxtab16 %0, %1, %2" : "=r"(result) : "r"(sums), "r"(word));
    return result;
}

/* Adds bytes 1 and 3 to the halves of sums. */
static inline int32_t mcud_add_odd_bytes(int32_t sums, int32_t word)
{
    int32_t result;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(sums), "r"(word));
    return result;
}

/* The larger one of each two signed bytes. */
static inline uint32_t mcud_max_bytes(uint32_t a, uint32_t b)
{
    uint32_t difference;
    __asm__("ssub8 %1, %0, %2\n\t" /* sets a flag for each byte of a that is not smaller than b's */
            "sel %0, %0, %2"
            : "+r"(a), "=&r"(difference)
            : "r"(b));
    return a;
}

/* sum + a.low * b.low + a.high * b.high */
static inline int32_t mcud_add_products(int32_t a, int32_t b, int32_t sum)
{
    int32_t result;
    __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

/* The lower halves of two words, or the upper ones, as a pair. */
static inline int32_t mcud_lower_halves(int32_t first, int32_t second)
{
    int32_t pair;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(first), "r"(second));
    return pair;
}

static inline int32_t mcud_upper_halves(int32_t first, int32_t second)
{
    int32_t pair;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(pair) : "r"(second), "r"(first));
    return pair;
}

/* Loads four bytes at any address. From C, Clang would load single bytes on cores without an operating system; the
 * instruction needs no alignment. */
static inline int32_t mcud_load_word(const void *from)
{
    int32_t word;
#if defined(__ARM_FEATURE_UNALIGNED)
    memcpy(&word, from, sizeof word);
#else
    __asm__("ldr %0, %1" : "=r"(word) : "m"(*(const mcud_four_bytes *)from));
#endif
    return word;
}

/* Expands four values of one pixel to its place in a group of `pixels` pixels. */
static inline void mcud_expand_four(int16_t *to, const int8_t *from, int32_t pixels)
{
    const int32_t word = mcud_load_word(from);
    int32_t *pairs = (int32_t *)(void *)to;
    pairs[0] = mcud_even_bytes(word);
    pairs[pixels] = mcud_odd_bytes(word);
}

/* Writes one value four times. */
static inline void mcud_expand_same(int16_t *to, int32_t value, int32_t pixels)
{
    int32_t *pairs = (int32_t *)(void *)to;
    pairs[0] = pairs[pixels] = (int32_t)((uint32_t)value << 16) | (value & 0xFFFF);
}

/* Memory operands of a block. GCC addresses them from the stack pointer. Clang would take a register for each, and
 * another one for the frame. So the block gets the address of a frame in `at`, a register that it writes later, and
 * copies the frame to the top of the stack. */
#if defined(__clang__)
enum { MCUD_FRAME_WORDS = 8 };
#define MCUD_FRAME(some, end, first, last, finish, y)                                                        \
    const uint32_t frame[MCUD_FRAME_WORDS] = {(uint32_t)(some),  (uint32_t)(end),                            \
                                              (uint32_t)(first), (uint32_t)(last),                           \
                                              (uint32_t)(finish)->zero_point, (uint32_t)(finish)->left,      \
                                              (uint32_t)(finish)->pitch, (uint32_t)(y)}
#define MCUD_ENTER(at, a, b)                                                                                 \
    "sub sp, sp, #32\n\t"                                                                                    \
    "ldrd %[" a "], %[" b "], [%[" at "]]\n\t"                                                               \
    "strd %[" a "], %[" b "], [sp]\n\t"                                                                      \
    "ldrd %[" a "], %[" b "], [%[" at "], #8]\n\t"                                                           \
    "strd %[" a "], %[" b "], [sp, #8]\n\t"                                                                  \
    "ldrd %[" a "], %[" b "], [%[" at "], #16]\n\t"                                                          \
    "strd %[" a "], %[" b "], [sp, #16]\n\t"                                                                 \
    "ldrd %[" a "], %[" b "], [%[" at "], #24]\n\t"                                                          \
    "strd %[" a "], %[" b "], [sp, #24]\n\t"
#define MCUD_LEAVE "add sp, sp, #32\n\t"
#define MCUD_AT "+&r"
#define MCUD_SOME "[sp]"
#define MCUD_END "[sp, #4]"
#define MCUD_FIRST "[sp, #8]"
#define MCUD_LAST "[sp, #12]"
#define MCUD_FINISH "[sp, #16]" /* zero point and left */
#define MCUD_LEFT "[sp, #20]"
#define MCUD_PITCH "[sp, #24]"
#define MCUD_Y "[sp, #28]"
#else
#define MCUD_ENTER(at, a, b) ""
#define MCUD_LEAVE ""
#define MCUD_AT "=&r"
#define MCUD_SOME "%[some]"
#define MCUD_END "%[end]"
#define MCUD_FIRST "%[first]"
#define MCUD_LAST "%[last]"
#define MCUD_FINISH "%[finish]"
#define MCUD_LEFT "%[left]"
#define MCUD_PITCH "%[pitch]"
#define MCUD_Y "%[y]"
#endif

/* Repeats `group` by the assembler: C99 compilers need not take literals of more than 4095 characters. They estimate
 * the size of the code from its lines, so the repetitions also appear as skipped lines. */
#define MCUD_REPEAT(times, group, lines) ".rept " times "\n\t" group ".endr\n.if 0\n" lines ".endif\n\t"
#define MCUD_LINES_10 "nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\n"
#define MCUD_LINES_20 MCUD_LINES_10 MCUD_LINES_10
#define MCUD_LINES_60 MCUD_LINES_20 MCUD_LINES_20 MCUD_LINES_20
#define MCUD_LINES_140 MCUD_LINES_60 MCUD_LINES_60 MCUD_LINES_20

/* Runs `one` until `at` is at ends[0], then `many` until it is at ends[1]. The ends are in memory, and `free` is a
 * register that every turn may overwrite: the products use all others that a compiler can give.
 */
#define MCUD_LOOPS(at, free, one, many)                                                                      \
    "ldr %[" free "], " MCUD_SOME "\n\t"                                                                           \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "beq 2f\n"                                                                                               \
    "1:\n\t" one "ldr %[" free "], " MCUD_SOME "\n\t"                                                              \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "bne 1b\n"                                                                                               \
    "2:\n\t"                                                                                                 \
    "ldr %[" free "], " MCUD_END "\n\t"                                                                            \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "beq 4f\n"                                                                                               \
    "3:\n\t" many "ldr %[" free "], " MCUD_END "\n\t"                                                              \
    "cmp %[" at "], %[" free "]\n\t"                                                                         \
    "bne 3b\n"                                                                                               \
    "4:\n\t"

#endif
