/* mcud_scale_32 by halves of 16 bits, since Armv6-M has no multiplication to 64 bits. The lowest 16 bits of
 * the product do not change the rounded upper half, so they are left out. */
#ifndef MCUD_SCALE_THUMB_H
#define MCUD_SCALE_THUMB_H

#include <stdint.h>

#define MCUD_SCALE_32

static inline int32_t mcud_scale_32(int32_t acc, int32_t multiplier)
{
#if defined(__GNUC__) && defined(__OPTIMIZE__)
    int32_t acc_low, low, scratch;
    __asm__(".syntax unified\n\t"
            "uxth %[acc_low], %[acc]\n\t"
            "asrs %[acc], %[acc], #16\n\t"
            "uxth %[low], %[high]\n\t"
            "asrs %[high], %[high], #16\n\t"
            "mov %[scratch], %[acc_low]\n\t"
            "muls %[scratch], %[low]\n\t"
            "lsrs %[scratch], %[scratch], #16\n\t"
            "muls %[low], %[acc]\n\t"
            "adds %[low], %[low], %[scratch]\n\t"
            "muls %[acc], %[high]\n\t"
            "muls %[acc_low], %[high]\n\t"
            "uxth %[scratch], %[low]\n\t"
            "adds %[acc_low], %[acc_low], %[scratch]\n\t"
            "asrs %[acc_low], %[acc_low], #15\n\t"
            "adds %[acc_low], %[acc_low], #1\n\t"
            "asrs %[acc_low], %[acc_low], #1\n\t"
            "asrs %[low], %[low], #16\n\t"
            "adds %[acc], %[acc], %[low]\n\t"
            "adds %[acc], %[acc], %[acc_low]\n\t"
            : [acc] "+l"(acc), [high] "+l"(multiplier), [acc_low] "=&l"(acc_low), [low] "=&l"(low),
              [scratch] "=&l"(scratch)
            :
            : "cc");
    return acc;
#else
    const int32_t acc_high = acc >> 16;
    const int32_t acc_low = acc & 0xffff;
    const int32_t high = multiplier >> 16;
    const int32_t low = multiplier & 0xffff;
    const int32_t middle = acc_high * low + (int32_t)(((uint32_t)acc_low * (uint32_t)low) >> 16);
    return acc_high * high + (middle >> 16) + ((((acc_low * high + (middle & 0xffff)) >> 15) + 1) >> 1);
#endif
}

#endif
