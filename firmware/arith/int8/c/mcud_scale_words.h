/* mcud_scale_32 from the two words of a 64-bit product, in assembly. From C, compilers multiply 64 by 64 bits if the
 * factors were clamped before. */
#ifndef MCUD_SCALE_WORDS_H
#define MCUD_SCALE_WORDS_H

#include <stdint.h>

#define MCUD_SCALE_32

static inline int32_t mcud_scale_32(int32_t acc, int32_t multiplier)
{
    int32_t lower, upper;
#if defined(__riscv)
    __asm__("mulh %0, %1, %2" : "=r"(upper) : "r"(acc), "r"(multiplier));
    lower = (int32_t)((uint32_t)acc * (uint32_t)multiplier);
#else
    __asm__("smull %0, %1, %2, %3" : "=&r"(lower), "=&r"(upper) : "r"(acc), "r"(multiplier));
#endif
    return upper + (int32_t)((uint32_t)lower >> 31);
}

#endif
