/* The products of mcud_winograd_c.h for RISC-V, in assembler because compilers load so far ahead that they put sums on
 * the stack. */
#ifndef MCUD_WINOGRAD_RISCV_H
#define MCUD_WINOGRAD_RISCV_H

/* One half of the weight `at` of a channel, times that half of both tiles. */
#define MCUD_TILE_WEIGHT(at, a, b)                                                                           \
    "lh %[v], " #at "(%[w])\n\tmul %[p], %[x0], %[v]\n\tmul %[v], %[x1], %[v]\n\t"                          \
    "add %[" a "], %[" a "], %[p]\n\tadd %[" b "], %[" b "], %[v]\n\t"

/* One half of a pair. */
#define MCUD_TILE_HALF(at, next)                                                                             \
    "lh %[x0], " #at "(%[x])\n\tlh %[x1], " #next "(%[x])\n\t" MCUD_TILE_WEIGHT(at, "s0", "s1")             \
    MCUD_TILE_WEIGHT(4 + at, "s2", "s3") MCUD_TILE_WEIGHT(8 + at, "s4", "s5") MCUD_TILE_WEIGHT(12 + at, "s6", "s7")

/* 47 instructions for 16 products. */
MCUD_NOINLINE void mcud_multiply_tiles(const int32_t *weights, const int32_t *tiles, int32_t *sums, int32_t pairs,
                                       int32_t positions)
{
    for (; positions > 0; positions--, sums += 8) {
        int32_t s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        int32_t x0, x1, v, p;
        __asm__ volatile("1:\n\t"
                         MCUD_TILE_HALF(0, 4) MCUD_TILE_HALF(2, 6)
                         "addi %[x], %[x], 8\n\taddi %[w], %[w], 16\n\tbltu %[x], %[end], 1b\n\t"
                         : [x] "+r"(tiles), [w] "+r"(weights), [s0] "+r"(s[0]), [s1] "+r"(s[1]), [s2] "+r"(s[2]),
                           [s3] "+r"(s[3]), [s4] "+r"(s[4]), [s5] "+r"(s[5]), [s6] "+r"(s[6]), [s7] "+r"(s[7]),
                           [x0] "=&r"(x0), [x1] "=&r"(x1), [v] "=&r"(v), [p] "=&r"(p)
                         : [end] "r"(tiles + 2 * pairs)
                         : "memory");
        memcpy(sums, s, sizeof s);
    }
}

#endif
