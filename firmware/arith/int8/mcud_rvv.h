/* Whether the core has RISC-V's vectors of integers (Zve32x), and the macros of their assembler.
 *
 * It is inline assembler: GCC 12 (binutils 2.38) and Clang 14 know the instructions, but only newer compilers have
 * intrinsics for them. No function relies on the length of vectors. Without F, GCC 12 wants zicsr in -march. */
#ifndef MCUD_RVV_H
#define MCUD_RVV_H

#include "mcud_compiler.h"

/* Drafts before version 1.0 do not count. Addresses in assembler have 32 bits. */
#if defined(__riscv_vector) && defined(__riscv_zve32x) && __riscv_xlen == 32 && MCUD_BLOCKS
#define MCUD_RVV 1
#else
#define MCUD_RVV 0
#endif

/* The registers that blocks may change. The length and type of vectors are not listed, since no compiler relies on them
 * after inline assembler. GCC 12 does not know vector registers, and never uses them. */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 13)
#define MCUD_RVV_CHANGED                                                                                     \
    "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",   \
        "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",   \
        "v29", "v30", "v31"
#else
#define MCUD_RVV_CHANGED "memory"
#endif

#endif
