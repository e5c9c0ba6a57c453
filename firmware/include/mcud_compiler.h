/* What compilers do differently: byte order, blocks of assembler, words that several cores share.
 *
 * Blocks are inline assembler that needs all registers of a core but the stack pointer. GCC allocates them. Clang and
 * its family (armclang, Zephyr's LLVM, Zig) take a register for every operand in memory, keep one for the frame, and
 * refuse: they get MCUD_BLOCKS 0, for which the same instructions are written as functions or intrinsics of C. Small
 * assembler, a few operands each, is for both. Other compilers, and builds without optimisation, get portable C. */
#ifndef MCUD_COMPILER_H
#define MCUD_COMPILER_H

#include <stdint.h>

/* Clang, armclang, GCC; then IAR, where the macro is 0 or 1, and older compilers of Arm. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these kernels are for little-endian cores"
#endif
#elif defined(__ARM_BIG_ENDIAN) || defined(__BIG_ENDIAN) || (defined(__LITTLE_ENDIAN__) && __LITTLE_ENDIAN__ == 0)
#error "these kernels are for little-endian cores"
#endif

#ifndef MCUD_BLOCKS
#if defined(__GNUC__) && !(defined(__clang__) && defined(__APCS_RWPI))
#define MCUD_BLOCKS 1
#else
#define MCUD_BLOCKS 0
#endif
#endif

/* A word that another core has written, and what that core wrote before it. Clang would call a library on a
 * Cortex-M0, whose loads and stores of a word are atomic. */
static inline uint32_t mcud_load_acquire(const uint32_t *word)
{
#if defined(__clang__) && defined(__ARM_ARCH_6M__)
    const uint32_t value = *(const volatile uint32_t *)word;
    __asm__ volatile("dmb" ::: "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

/* Writes a word for another core, after all that was written before. */
static inline void mcud_store_release(uint32_t *word, uint32_t value)
{
#if defined(__clang__) && defined(__ARM_ARCH_6M__)
    __asm__ volatile("dmb" ::: "memory");
    *(volatile uint32_t *)word = value;
#else
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

#endif
