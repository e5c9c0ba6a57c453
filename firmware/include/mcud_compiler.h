/* What is known of the compiler: the byte order it makes code for, and whether it takes blocks of assembler.
 *
 * Blocks are inline assembler that needs all registers of a core but the stack pointer. GCC allocates them. Clang and
 * its family (armclang, Zephyr's LLVM, Zig) take a register for every operand in memory, keep one for the frame, and
 * refuse: they get MCUD_BLOCKS 0, for which the same instructions are written as functions or intrinsics of C. Small
 * assembler, a few operands each, is for both. Other compilers, and builds without optimisation, get portable C. */
#ifndef MCUD_COMPILER_H
#define MCUD_COMPILER_H

/* Clang, armclang, GCC; then IAR, where the macro is 0 or 1, and older compilers of Arm. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these kernels are for little-endian cores"
#endif
#elif defined(__ARM_BIG_ENDIAN) || defined(__BIG_ENDIAN) || (defined(__LITTLE_ENDIAN__) && __LITTLE_ENDIAN__ == 0)
#error "these kernels are for little-endian cores"
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define MCUD_BLOCKS 1
#else
#define MCUD_BLOCKS 0
#endif

#endif
