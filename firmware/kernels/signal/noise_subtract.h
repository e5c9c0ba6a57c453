/* The signal of each channel less its noise, but at least a share of the signal.
 *
 * in[0]    uint32_t [1][1][channels], the signal
 * in[1]    uint32_t [1][1][channels], the noise, times 2^scale_bits
 * out      uint32_t [1][1][channels]; may be the memory of in[0]
 */
#ifndef MCUD_NOISE_SUBTRACT_H
#define MCUD_NOISE_SUBTRACT_H

#include "mcud.h"

typedef struct {
    int32_t channels;
    int32_t scale_bits; /* 0..31 */
    int32_t least;      /* the share, in units of 1 / 2^bits */
    int32_t bits;       /* 0..63 */
} mcud_noise_subtract_params;

mcud_kernel mcud_noise_subtract;

#endif
