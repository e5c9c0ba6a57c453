/* The noise of each channel: a running mean of its signal.
 *
 * in[0]    uint32_t [1][1][channels], the signal
 * in[1]    uint32_t [1][1][channels], the estimate of the run before
 * out      uint32_t [1][1][channels], the estimate; may be the memory of in[1]
 *
 * The new estimate is (signal * 2^scale_bits * newest + old estimate * oldest) / 2^bits, in 64 bits, rounded down.
 */
#ifndef MCUD_NOISE_ESTIMATE_H
#define MCUD_NOISE_ESTIMATE_H

#include "mcud.h"

typedef struct {
    int32_t channels;
    int32_t scale_bits; /* 0..31 */
    int32_t bits;       /* 0..63 */
    int32_t even_newest; /* the factors of channels 0, 2, ... */
    int32_t even_oldest;
    int32_t odd_newest; /* the factors of channels 1, 3, ... */
    int32_t odd_oldest;
    int32_t clamped; /* 1: the estimate is at most the signal */
} mcud_noise_estimate_params;

mcud_kernel mcud_noise_estimate;

#endif
