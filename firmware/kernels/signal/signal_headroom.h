/* The number of bits by which samples can be shifted to the left: 15 less the bits of the largest magnitude.
 *
 * in[0]    int16_t [1][1][count]
 * out      int32_t [1][1][1], 0..15
 *
 * As in TensorFlow Lite Micro, the magnitude of -32768 counts as -32768, so that only the samples after it decide. The
 * result is 0 for silence.
 */
#ifndef MCUD_SIGNAL_HEADROOM_H
#define MCUD_SIGNAL_HEADROOM_H

#include "mcud.h"

typedef struct {
    int32_t count;
} mcud_signal_headroom_params;

mcud_kernel mcud_signal_headroom;

#endif
