/* mcud_vector.h with RISC-V vector instructions: copies of bytes. */
#ifndef MCUD_VECTOR_RVV_H
#define MCUD_VECTOR_RVV_H

#include "mcud_add_rvv.h"

/* to[bytes] = from[bytes] */
static inline void mcud_vector_copy(void *to, const void *from, int32_t bytes)
{
    int32_t vl;
    for (; bytes > 0; bytes -= vl) {
        __asm__ volatile("vsetvli %[vl], %[bytes], e8, m8, ta, ma\n\t"
                         "vle8.v v0, (%[from])\n\t"
                         "vse8.v v0, (%[to])"
                         : [vl] "=&r"(vl)
                         : [bytes] "r"(bytes), [from] "r"(from), [to] "r"(to)
                         : MCUD_RVV_CHANGED);
        from = (const uint8_t *)from + vl;
        to = (uint8_t *)to + vl;
    }
}

/* to[windows][rows][bytes] from memory + offsets[rows]; windows are `step` bytes apart. All counts are at least 1. */
static inline void mcud_vector_gather(int8_t *to, const uint8_t *memory, int32_t step, int32_t windows,
                                      const uint32_t *offsets, int32_t rows, int32_t bytes)
{
    const uint32_t *next;
    const uint8_t *from;
    int32_t left;
    int32_t vl;
    __asm__ volatile("1:\n\t"
                     "mv %[next], %[offsets]\n"
                     "2:\n\t"
                     "lw %[from], 0(%[next])\n\t"
                     "mv %[left], %[bytes]\n\t"
                     "addi %[next], %[next], 4\n\t"
                     "add %[from], %[from], %[memory]\n"
                     "3:\n\t"
                     "vsetvli %[vl], %[left], e8, m8, ta, ma\n\t"
                     "vle8.v v0, (%[from])\n\t"
                     "sub %[left], %[left], %[vl]\n\t"
                     "add %[from], %[from], %[vl]\n\t"
                     "vse8.v v0, (%[to])\n\t"
                     "add %[to], %[to], %[vl]\n\t"
                     "bnez %[left], 3b\n\t"
                     "bne %[next], %[end], 2b\n\t"
                     "add %[memory], %[memory], %[step]\n\t"
                     "addi %[windows], %[windows], -1\n\t"
                     "bnez %[windows], 1b"
                     : [to] "+&r"(to), [memory] "+&r"(memory), [windows] "+&r"(windows), [next] "=&r"(next),
                       [from] "=&r"(from), [left] "=&r"(left), [vl] "=&r"(vl)
                     : [offsets] "r"(offsets), [step] "r"(step), [bytes] "r"(bytes), [end] "r"(offsets + rows)
                     : MCUD_RVV_CHANGED);
}

/* to[bytes], all `value` */
static inline void mcud_vector_fill(void *to, int32_t value, int32_t bytes)
{
    int32_t vl;
    for (; bytes > 0; bytes -= vl) {
        __asm__ volatile("vsetvli %[vl], %[bytes], e8, m8, ta, ma\n\t"
                         "vmv.v.x v0, %[value]\n\t"
                         "vse8.v v0, (%[to])"
                         : [vl] "=&r"(vl)
                         : [bytes] "r"(bytes), [value] "r"(value), [to] "r"(to)
                         : MCUD_RVV_CHANGED);
        to = (uint8_t *)to + vl;
    }
}

#endif
