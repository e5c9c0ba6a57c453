/* The products of mcud_winograd_c.h for cores with the instructions of a Cortex-M0; see mcud_simd_thumb.h. */
#ifndef MCUD_WINOGRAD_THUMB_H
#define MCUD_WINOGRAD_THUMB_H

/* The lower halves of a weight and of two tiles, then their upper halves. The weight is loaded twice, since there are
 * no more registers. */
#define MCUD_TILE_WEIGHT(at, a, b)                                                                           \
    "ldr r6, [%[w], #" #at "]\n\tsxth r6, r6\n\t"                                                           \
    "sxth r7, r4\n\tmuls r7, r6\n\tadd " a ", r7\n\tsxth r7, r5\n\tmuls r7, r6\n\tadd " b ", r7\n\t"         \
    "ldr r6, [%[w], #" #at "]\n\tasrs r6, r6, #16\n\t"                                                      \
    "asrs r7, r4, #16\n\tmuls r7, r6\n\tadd " a ", r7\n\tasrs r7, r5, #16\n\tmuls r7, r6\n\tadd " b ", r7\n\t"

/* 69 instructions for 16 products. */
MCUD_NOINLINE void mcud_multiply_tiles(const int32_t *weights, const int32_t *tiles, int32_t *sums, int32_t pairs,
                                       int32_t positions)
{
    for (; positions > 0; positions--, sums += 8) {
        const int32_t *const end = tiles + 2 * pairs;
        int32_t *const to = sums;
        __asm__ volatile(".syntax unified\n\t"
                         "movs r2, #0\n\tmovs r3, #0\n\tmov r8, r2\n\tmov r9, r2\n\tmov r10, r2\n\t"
                         "mov r11, r2\n\tmov r12, r2\n\tmov lr, r2\n"
                         "1:\n\t"
                         "ldmia %[x]!, {r4, r5}\n\t"
                         MCUD_TILE_WEIGHT(0, "r2", "r3")
                         MCUD_TILE_WEIGHT(4, "r8", "r9")
                         MCUD_TILE_WEIGHT(8, "r10", "r11")
                         MCUD_TILE_WEIGHT(12, "r12", "lr")
                         "adds %[w], #16\n\tldr r7, %[end]\n\tcmp %[x], r7\n\tbcc 1b\n\t"
                         "ldr r7, %[to]\n\tmov r4, r8\n\tmov r5, r9\n\tstmia r7!, {r2, r3, r4, r5}\n\t"
                         "mov r2, r10\n\tmov r3, r11\n\tmov r4, r12\n\tmov r5, lr\n\tstmia r7!, {r2, r3, r4, r5}\n\t"
                         : [x] "+l"(tiles), [w] "+l"(weights)
                         : [end] "m"(end), [to] "m"(to)
                         : "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
    }
}

#endif
