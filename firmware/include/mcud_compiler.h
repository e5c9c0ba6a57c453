/* Differences between compilers: byte order, blocks of assembler, words that several cores share.
 *
 * A block is inline assembler that uses every register a compiler can give. GCC and Clang compile blocks for the DSP
 * extension and for RISC-V's vectors. Only GCC compiles those for Arm's vectors and for Cortex-M0: Clang gets
 * intrinsics and portable C. If MCUD_BLOCKS is 0, C replaces all blocks. It is 0 where Clang reserves r9 (-frwpi); define it as 0
 * if a compiler reports that assembler needs too many registers. Assembler with few operands stays. Builds without
 * optimisation, and compilers of other families, get portable C. */
#ifndef MCUD_COMPILER_H
#define MCUD_COMPILER_H

#include <float.h>
#include <stdint.h>

/* The rounding of float kernels is that of IEEE single precision: the x87, for example, keeps wider values. */
#if defined(__FAST_MATH__)
#error "compile these files with -fno-fast-math: the option for these files alone, after the project's -ffast-math"
#elif FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2
#error "compile these kernels for float arithmetic of single precision, such as -mfpmath=sse"
#endif

/* Clang, armclang, GCC; then IAR, where the macro is 0 or 1, and older compilers of Arm. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these kernels are for little-endian cores"
#endif
#elif defined(__ARM_BIG_ENDIAN) || defined(__BIG_ENDIAN) || (defined(__LITTLE_ENDIAN__) && __LITTLE_ENDIAN__ == 0)
#error "these kernels are for little-endian cores"
#endif

#ifndef MCUD_BLOCKS
#if defined(__GNUC__) && !(defined(__clang__) && defined(__ARM_RWPI))
#define MCUD_BLOCKS 1
#else
#define MCUD_BLOCKS 0
#endif
#endif

/* A function of assembler alone. GCC must not analyse its body, where it sees no use of an argument and no change of a
 * register. */
#if defined(__clang__)
#define MCUD_NAKED __attribute__((naked, noinline))
#else
#define MCUD_NAKED __attribute__((naked, noinline, noclone, noipa))
#endif
#define MCUD_UNUSED __attribute__((unused))

/* 1 where Clang calls a library for atomic words, although one instruction loads or stores them: Cortex-M0, and RISC-V
 * without its A extension. */
#if defined(__clang__) && (defined(__ARM_ARCH_6M__) || (defined(__riscv) && !defined(__riscv_atomic)))
#define MCUD_FENCES 1
#else
#define MCUD_FENCES 0
#endif

/* A function that is not inlined, so that the sums of its loop stay in registers. Compilers other than GCC and Clang
 * may inline it. */
#if defined(__GNUC__)
#define MCUD_NOINLINE __attribute__((noinline, unused)) static
#else
#define MCUD_NOINLINE static inline
#endif

/* Reads a word that another core writes. After it, this core sees what that core wrote before the word. */
static inline uint32_t mcud_load_acquire(const uint32_t *word)
{
#if MCUD_FENCES
    const uint32_t value = *(const volatile uint32_t *)word;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

/* Writes a word for another core, after all that was written before. */
static inline void mcud_store_release(uint32_t *word, uint32_t value)
{
#if MCUD_FENCES
    __atomic_thread_fence(__ATOMIC_RELEASE);
    *(volatile uint32_t *)word = value;
#else
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

#endif
