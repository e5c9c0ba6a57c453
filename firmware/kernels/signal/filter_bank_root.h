/* The square roots of the energies of overlapping filters, which are sums in 64 bits.
 *
 * in[0]    uint32_t [1][1][points], a spectrum of energies
 * in[1]    int32_t [1][1][1], bits by which the roots are shifted to the right, 0..31
 * out      uint32_t [1][1][channels]
 *
 * The spectrum has channels + 1 ranges. Range r adds its energies times `weights` to channel r - 1, and times `rest` to
 * channel r. A root is rounded to the nearest integer, at most 2^16 - 1 for a sum of 32 bits, else 2^32 - 1.
 */
#ifndef MCUD_FILTER_BANK_ROOT_H
#define MCUD_FILTER_BANK_ROOT_H

#include "mcud.h"

typedef struct {
    const int16_t *weights;  /* of all ranges in sequence */
    const int16_t *rest;
    const uint16_t *points;  /* [channels + 1], the first point of each range */
    const uint16_t *places;  /* [channels + 1], the first weight of each range */
    const uint16_t *widths;  /* [channels + 1] */
    int32_t channels;
} mcud_filter_bank_root_params;

mcud_kernel mcud_filter_bank_root;

#endif
