/* The steps of mcud_output_tiles.h for cores with the DSP extension: a lane is two channels, halves of a word. */
#ifndef MCUD_WINOGRAD_DSP_H
#define MCUD_WINOGRAD_DSP_H

#include "mcud_dsp.h"
#include "mcud_products_dsp.h"

enum { MCUD_LANES = 2 };

/* Copies `bytes` bytes of each of `pixels` pixels, which are `step` bytes apart, to to[pixels][bytes]; returns the
 * end. */
static inline int8_t *mcud_copy_pixels(int8_t *to, const int8_t *from, int32_t step, int32_t pixels, int32_t bytes)
{
    int32_t *words = (int32_t *)(void *)to;
    for (; pixels > 0; pixels--, from += step) {
        if (bytes == 16) {
            const int32_t a = mcud_load_word(from), b = mcud_load_word(from + 4);
            const int32_t c = mcud_load_word(from + 8), d = mcud_load_word(from + 12);
            words[0] = a;
            words[1] = b;
            words[2] = c;
            words[3] = d;
            words += 4;
            continue;
        }
        for (int32_t i = 0; i < bytes; i += 4) {
            *words++ = mcud_load_word(from + i);
        }
    }
    return (int8_t *)words;
}

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

MCUD_BLOCK int8_t mcud_requantize_shifted(int32_t sum, const int32_t *factor, int32_t zero, int32_t shift)
{
#if MCUD_FACTORS == 2
    const mcud_finish_s8 finish = {zero, 0, 0};
    return MCUD_RESULT_S8(sum >> shift, factor, 1, &finish);
#else
    __asm__("smmla %0, %0, %1, %2" : "+r"(sum) : "r"(*factor), "r"(zero));
    __asm__("ssat %0, #8, %0, asr %1" : "+r"(sum) : "i"(shift));
    return (int8_t)sum;
#endif
}

#if MCUD_BLOCKS

#define MCUD_TILES_DSP 1

/* Transforms r4-r9 along an axis to r4, r8, r6, r12, r10, r9. Each `put` stores one of them as soon as it is complete:
 * a Cortex-M7 begins a store together with the instruction before it. */
#define MCUD_TRANSFORM_6(put4, put8, put6, put12, put10, put9)                                               \
    "ssub16 r10, r8, r6\n\t"                                                                                 \
    "ssub16 r4, r4, r6\n\t"                                                                                  \
    "sadd16 r4, r4, r4\n\t"                                                                                  \
    "sadd16 r4, r4, r4\n\t"                                                                                  \
    "sadd16 r4, r4, r10\n\t"                                                                                 \
    "ssub16 r11, r7, r5\n\t" put4                                                                            \
    "sadd16 r11, r11, r11\n\t"                                                                               \
    "sadd16 r12, r10, r11\n\t"                                                                               \
    "ssub16 r10, r10, r11\n\t" put12                                                                         \
    "sadd16 r11, r11, r11\n\t" put10                                                                         \
    "ssub16 r9, r9, r7\n\t"                                                                                  \
    "ssub16 r9, r9, r11\n\t"                                                                                 \
    "sadd16 r6, r6, r6\n\t" put9                                                                             \
    "sadd16 r6, r6, r6\n\t"                                                                                  \
    "ssub16 r6, r8, r6\n\t"                                                                                  \
    "sadd16 r5, r5, r5\n\t"                                                                                  \
    "sadd16 r5, r5, r5\n\t"                                                                                  \
    "ssub16 r5, r7, r5\n\t"                                                                                  \
    "sadd16 r8, r6, r5\n\t"                                                                                  \
    "ssub16 r6, r6, r5\n\t" put8 put6

/* Transforms a lane of a column to 6 words from r3 on, 48 bytes apart: the rows at r0, r1 and r2, and the rows lr bytes
 * after each of them. */
#define MCUD_TRANSFORM_COLUMN(rotate, a, b, c, d, e, f)                                                      \
    "ldr r4, [r0]\n\t"                                                                                       \
    "ldr r5, [r0, lr]\n\t"                                                                                   \
    "ldr r6, [r1]\n\t"                                                                                       \
    "ldr r7, [r1, lr]\n\t"                                                                                   \
    "ldr r8, [r2]\n\t"                                                                                       \
    "ldr r9, [r2, lr]\n\t"                                                                                   \
    "sxtb16 r4, r4" rotate "\n\t"                                                                            \
    "sxtb16 r5, r5" rotate "\n\t"                                                                            \
    "sxtb16 r6, r6" rotate "\n\t"                                                                            \
    "sxtb16 r7, r7" rotate "\n\t"                                                                            \
    "sxtb16 r8, r8" rotate "\n\t"                                                                            \
    "sxtb16 r9, r9" rotate "\n\t"                                                                            \
    MCUD_TRANSFORM_6("str r4, [r3, #" a "]\n\t", "str r8, [r3, #" b "]\n\t", "str r6, [r3, #" c "]\n\t",     \
                     "str r12, [r3, #" d "]\n\t", "str r10, [r3, #" e "]\n\t", "str r9, [r3, #" f "]\n\t")

/* Transforms a lane of a row, six words from r3 on, to six positions from r0 and r2 on, r1 bytes apart. */
#define MCUD_TRANSFORM_ROW(at)                                                                               \
    "ldm r3!, {r4-r9}\n\t"                                                                                   \
    MCUD_TRANSFORM_6("str r4, [r0, #" at "]!\n\t", "str r8, [r0, r1]\n\t", "str r6, [r0, r1, lsl #1]\n\t",   \
                     "str r12, [r2, #" at "]!\n\t", "str r10, [r2, r1]\n\t", "str r9, [r2, r1, lsl #1]\n\t")

/* As MCUD_TRANSFORM_COLUMN for a tile of two rows: r0, r1, r2 and r9, each + r10, to 4 words. */
#define MCUD_TRANSFORM_COLUMN_4(rotate, a, b, c, d)                                                          \
    "ldr r4, [r0, r10]\n\t"                                                                                  \
    "ldr r5, [r1, r10]\n\t"                                                                                  \
    "ldr r6, [r2, r10]\n\t"                                                                                  \
    "ldr r7, [r9, r10]\n\t"                                                                                  \
    "sxtb16 r4, r4" rotate "\n\t"                                                                            \
    "sxtb16 r5, r5" rotate "\n\t"                                                                            \
    "sxtb16 r6, r6" rotate "\n\t"                                                                            \
    "sxtb16 r7, r7" rotate "\n\t"                                                                            \
    "ssub16 r4, r4, r6\n\t"                                                                                  \
    "ssub16 r7, r5, r7\n\t"                                                                                  \
    "sadd16 r8, r5, r6\n\t"                                                                                  \
    "ssub16 r6, r6, r5\n\t"                                                                                  \
    "str r4, [r3, #" a "]\n\t"                                                                               \
    "str r8, [r3, #" b "]\n\t"                                                                               \
    "str r6, [r3, #" c "]\n\t"                                                                               \
    "str r7, [r3, #" d "]\n\t"

/* Transforms `rows` rows of input: the columns first, into `work`. Stack: x, pixel, row, end of x, the fields of `by`,
 * then `own` of `bytes` bytes. `enter` sets r0, r2, r3 and r4 to the first four of these, `begin` begins a group of
 * channels, `column` advances to the next pixel and compares it with the end. */
#define MCUD_TRANSFORM_TILE(rows, own, bytes, enter, begin, column)                                          \
    __asm__(                                                                                                 \
        "push {r4-r11, lr}\n\t" own                                                                          \
        "ldm r1, {r4-r7}\n\t"                                                                                \
        "push {r4-r7}\n\t" enter                                                                             \
        "push {r2, r3, r4}\n\t"                                                                              \
        "sub sp, sp, #4\n\t"                                                                                 \
        "mov r1, r3\n\t"                                                                                     \
        "0:\n\t"                                                                                             \
        "str r0, [sp]\n\t"                                                                                   \
        "ldr r3, [sp, #28]\n\t" begin                                                                        \
        "1:\n\t" column                                                                                      \
        "bne 1b\n\t"                                                                                         \
        "ldr r3, [sp, #28]\n\t"                                                                              \
        "ldr r0, [sp, #16]\n\t"                                                                              \
        "ldr r1, [sp, #20]\n\t"                                                                              \
        "mov lr, #" rows "\n\t"                                                                              \
        "2:\n\t"                                                                                             \
        "add r2, r0, r1\n\t"                                                                                 \
        "add r2, r2, r1, lsl #1\n\t"                                                                         \
        MCUD_TRANSFORM_ROW("0") MCUD_TRANSFORM_ROW("8")                                                      \
        "add r0, r2, r1\n\t"                                                                                 \
        "add r0, r0, r1, lsl #1\n\t"                                                                         \
        "sub r0, r0, #8\n\t"                                                                                 \
        "subs lr, lr, #1\n\t"                                                                                \
        "bne 2b\n\t"                                                                                         \
        "ldr r2, [sp, #16]\n\t"                                                                              \
        "ldr r0, [sp]\n\t"                                                                                   \
        "ldr r1, [sp, #8]\n\t"                                                                               \
        "ldr r3, [sp, #12]\n\t"                                                                              \
        "add r2, r2, #16\n\t"                                                                                \
        "add r0, r0, #4\n\t"                                                                                 \
        "str r2, [sp, #16]\n\t"                                                                              \
        "cmp r0, r3\n\t"                                                                                     \
        "bne 0b\n\t"                                                                                         \
        "add sp, sp, #32 + " bytes "\n\t"                                                                    \
        "pop {r4-r11, pc}\n\t")

/* For tiles of 4 rows, whose input rows are in pairs. The stack also has the distances of the second and third pair
 * from the first, and the end of `work`. */
MCUD_NAKED static void mcud_transform_tile_4(MCUD_UNUSED const mcud_tile_input *in, MCUD_UNUSED const mcud_tile_transform *by)
{
    MCUD_TRANSFORM_TILE("6",
                        "ldr r4, [r0]\n\t"
                        "ldr r8, [r0, #8]\n\t"
                        "ldr r9, [r0, #16]\n\t"
                        "ldr r10, [r1, #12]\n\t"
                        "sub r8, r8, r4\n\t"
                        "sub r9, r9, r4\n\t"
                        "add r10, r10, #24\n\t"
                        "push {r8-r10}\n\t",
                        "12",
                        "ldrd r2, r3, [r0, #24]\n\t"
                        "ldr r0, [r0]\n\t"
                        "add r4, r0, r6\n\t",
                        "mov lr, r1\n\t"
                        "ldr r1, [sp, #32]\n\t"
                        "ldr r2, [sp, #36]\n\t"
                        "add r1, r1, r0\n\t"
                        "add r2, r2, r0\n\t",
                        MCUD_TRANSFORM_COLUMN("", "0", "48", "96", "144", "192", "240")
                        MCUD_TRANSFORM_COLUMN(", ror #8", "24", "72", "120", "168", "216", "264")
                        "ldr r12, [sp, #4]\n\t"
                        "ldr r11, [sp, #40]\n\t"
                        "add r3, r3, #4\n\t"
                        "add r0, r0, r12\n\t"
                        "add r1, r1, r12\n\t"
                        "add r2, r2, r12\n\t"
                        "cmp r3, r11\n\t");
}

/* For tiles of 2 rows, whose input rows may be at any addresses: x is an offset in all rows, and `row` the address of
 * their pointers. */
MCUD_NAKED static void mcud_transform_tile_2(MCUD_UNUSED const mcud_tile_input *in, MCUD_UNUSED const mcud_tile_transform *by)
{
    MCUD_TRANSFORM_TILE("4",
                        "",
                        "0",
                        "ldr r2, [r0, #24]\n\t"
                        "mov r3, r0\n\t"
                        "mov r4, r6\n\t"
                        "mov r0, #0\n\t",
                        "mov lr, #6\n\t"
                        "mov r10, r0\n\t"
                        "ldr r11, [sp, #4]\n\t"
                        "ldm r1, {r0, r1, r2, r9}\n\t",
                        MCUD_TRANSFORM_COLUMN_4("", "0", "48", "96", "144")
                        MCUD_TRANSFORM_COLUMN_4(", ror #8", "24", "72", "120", "168")
                        "add r3, r3, #4\n\t"
                        "add r10, r10, r11\n\t"
                        "subs lr, lr, #1\n\t");
}

/* Transforms a lane of a row of x, whose pixels are r1 apart from r0 and r3 on, to six positions, lr apart. */
#define MCUD_TRANSFORM_PIXELS(rotate, at)                                                                    \
    "ldr r4, [r0]\n\t"                                                                                       \
    "ldr r5, [r0, r1]\n\t"                                                                                   \
    "ldr r6, [r0, r1, lsl #1]\n\t"                                                                           \
    "ldr r7, [r3]\n\t"                                                                                       \
    "ldr r8, [r3, r1]\n\t"                                                                                   \
    "ldr r9, [r3, r1, lsl #1]\n\t"                                                                           \
    "sxtb16 r4, r4" rotate "\n\t"                                                                            \
    "sxtb16 r5, r5" rotate "\n\t"                                                                            \
    "sxtb16 r6, r6" rotate "\n\t"                                                                            \
    "sxtb16 r7, r7" rotate "\n\t"                                                                            \
    "sxtb16 r8, r8" rotate "\n\t"                                                                            \
    "sxtb16 r9, r9" rotate "\n\t"                                                                            \
    MCUD_TRANSFORM_6("str r4, [r2, #" at "]!\n\tadd r4, r2, lr\n\tadd r4, r4, lr, lsl #1\n\t", "str r8, [r2, lr]\n\t",\
                     "str r6, [r2, lr, lsl #1]\n\t", "str r12, [r4]\n\t", "str r10, [r4, lr]\n\t",           \
                     "str r9, [r4, lr, lsl #1]\n\t")

/* Transforms three rows in sequence. Stack: the address of the pointer to the next row, depth, the distance from the
 * last position of a row to the first one of the next row, rows left, end of the row. */
MCUD_NAKED static void mcud_transform_tile_1(MCUD_UNUSED const mcud_tile_input *in, MCUD_UNUSED const mcud_tile_transform *by)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "ldm r1, {r2, r5, r6}\n\t"
        "mov r4, r0\n\t"
        "ldr r1, [r0, #24]\n\t"
        "mov lr, r5\n\t"
        "mov r7, #3\n\t"
        "udiv r8, r5, r7\n\t" /* a position has three rows */
        "mov r5, r6\n\t"
        "sub r6, r8, r6, lsl #2\n\t"
        "sub sp, sp, #4\n\t"
        "push {r4-r7}\n\t"
        "0:\n\t"
        "ldr r4, [sp]\n\t"
        "ldr r5, [sp, #4]\n\t"
        "ldr r0, [r4], #4\n\t"
        "str r4, [sp]\n\t"
        "add r5, r5, r0\n\t"
        "str r5, [sp, #16]\n\t"
        "1:\n\t"
        "add r3, r0, r1\n\t"
        "add r3, r3, r1, lsl #1\n\t"
        MCUD_TRANSFORM_PIXELS("", "0")
        MCUD_TRANSFORM_PIXELS(", ror #8", "8")
        "ldr r4, [sp, #16]\n\t"
        "add r0, r0, #4\n\t"
        "add r2, r2, #8\n\t"
        "cmp r0, r4\n\t"
        "bne 1b\n\t"
        "ldr r6, [sp, #8]\n\t"
        "ldr r7, [sp, #12]\n\t"
        "add r2, r2, r6\n\t"
        "subs r7, r7, #1\n\t"
        "str r7, [sp, #12]\n\t"
        "bne 0b\n\t"
        "add sp, sp, #20\n\t"
        "pop {r4-r11, pc}\n\t");
}

/* MCUD_PRODUCTS_4X2 twice; with MCUD_PAIRS_LOADS the loads of the second are within the first. */
#ifdef MCUD_PAIRS_LOADS
#define MCUD_MULTIPLY_PAIRS                                                                                  \
    "ldr r3, [r1, #4]\n\t"                                                                                   \
    "ldr r2, [r1], #8\n\t"                                                                                   \
    "ldr lr, [r0, #4]\n\t"                                                                                   \
    "ldr r12, [r0], #16\n\t"                                                                                 \
    "smlad r6, lr, r2, r6\n\t"                                                                               \
    "smlad r7, lr, r3, r7\n\t"                                                                               \
    "ldr lr, [r0, #-4]\n\t"                                                                                  \
    "smlad r4, r12, r2, r4\n\t"                                                                              \
    "smlad r5, r12, r3, r5\n\t"                                                                              \
    "ldr r12, [r0, #-8]\n\t"                                                                                 \
    "smlad r10, lr, r2, r10\n\t"                                                                             \
    "smlad r11, lr, r3, r11\n\t"                                                                             \
    "ldr lr, [r0, #4]\n\t"                                                                                   \
    "smlad r8, r12, r2, r8\n\t"                                                                              \
    "ldr r2, [r1], #8\n\t"                                                                                   \
    "smlad r9, r12, r3, r9\n\t"                                                                              \
    "ldr r12, [r0], #16\n\t"                                                                                 \
    "smlad r6, lr, r2, r6\n\t"                                                                               \
    "ldr r3, [r1, #-4]\n\t"                                                                                  \
    "smlad r4, r12, r2, r4\n\t"                                                                              \
    "smlad r7, lr, r3, r7\n\t"                                                                               \
    "ldr lr, [r0, #-4]\n\t"                                                                                  \
    "smlad r5, r12, r3, r5\n\t"                                                                              \
    "ldr r12, [r0, #-8]\n\t"                                                                                 \
    "smlad r10, lr, r2, r10\n\t"                                                                             \
    "smlad r11, lr, r3, r11\n\t"                                                                             \
    "smlad r8, r12, r2, r8\n\t"                                                                              \
    "smlad r9, r12, r3, r9\n\t"
#else
#define MCUD_MULTIPLY_PAIRS MCUD_PRODUCTS_4X2("") MCUD_PRODUCTS_4X2("")
#endif

/* Stack: sums, bytes of a position's weights, positions, the end of the position. */
MCUD_NAKED static void mcud_multiply_tiles(MCUD_UNUSED const int32_t *weights, MCUD_UNUSED const int32_t *tiles,
                               MCUD_UNUSED int32_t *sums, MCUD_UNUSED int32_t pairs, MCUD_UNUSED int32_t positions)
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "ldr r4, [sp, #36]\n\t"
        "lsl r3, r3, #4\n\t"
        "add r5, r0, r3\n\t"
        "push {r2, r3, r4, r5}\n\t"
        "0:\n\t"
        "ldr r12, [sp, #4]\n\t"
        "mov r4, #0\n\t"
        "mov r5, #0\n\t"
        "mov r6, #0\n\t"
        "mov r7, #0\n\t"
        "mov r8, #0\n\t"
        "mov r9, #0\n\t"
        "mov r10, #0\n\t"
        "mov r11, #0\n\t"
        "tst r12, #32\n\t" /* the number of pairs is even: two remain after fours */
        "bne 2f\n\t"
        "1:\n\t"
        MCUD_MULTIPLY_PAIRS
        "2:\n\t"
        MCUD_MULTIPLY_PAIRS
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

#include "mcud_tile_results_dsp.h"

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
