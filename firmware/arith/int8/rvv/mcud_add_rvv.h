/* Sums of two operands with RISC-V vector instructions. */
#ifndef MCUD_ADD_RVV_H
#define MCUD_ADD_RVV_H

#include "mcud_params.h"
#include "mcud_rvv.h"

/* out[count] = a[count] * a_multiplier + b[count] * b_multiplier, requantised as add_s8.h states. */
static inline void mcud_vector_add(const int8_t *a, const int8_t *b, int8_t *out, int32_t count,
                                   const mcud_sum_quant *addition)
{
    int32_t vl;
    __asm__ volatile("csrwi vxrm, 1\n" /* ties to even */
                     "1:\n\t"
                     "vsetvli %[vl], %[count], e32, m8, ta, ma\n\t"
                     "vle8.v v6, (%[a])\n\t"
                     "vmv.v.x v16, %[constant]\n\t"
                     "add %[a], %[a], %[vl]\n\t"
                     "vle8.v v14, (%[b])\n\t"
                     "add %[b], %[b], %[vl]\n\t"
                     "vsext.vf4 v0, v6\n\t"
                     "vmacc.vx v16, %[a_multiplier], v0\n\t"
                     "vsext.vf4 v8, v14\n\t"
                     "vmacc.vx v16, %[b_multiplier], v8\n\t"
                     "vsetvli zero, zero, e16, m4, ta, ma\n\t"
                     "vnclip.wx v16, v16, %[shift]\n\t"
                     "vsadd.vx v16, v16, %[zero]\n\t"
                     "vsetvli zero, zero, e8, m2, ta, ma\n\t"
                     "vnclip.wi v16, v16, 0\n\t"
                     "sub %[count], %[count], %[vl]\n\t"
                     "vse8.v v16, (%[out])\n\t"
                     "add %[out], %[out], %[vl]\n\t"
                     "bnez %[count], 1b"
                     : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [count] "+&r"(count), [vl] "=&r"(vl)
                     : [constant] "r"(addition->constant), [a_multiplier] "r"(addition->a_multiplier),
                       [b_multiplier] "r"(addition->b_multiplier), [shift] "r"(addition->shift),
                       [zero] "r"(addition->zero_point)
                     : MCUD_RVV_CHANGED);
}

#endif
