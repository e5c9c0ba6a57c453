/* Shifts samples to the left by a number of bits from another tensor; results wrap around.
 *
 * in[0]    int16_t [1][1][count]
 * in[1]    int32_t [1][1][1], 0..15
 * out      int16_t [1][1][count]; may be the memory of in[0]
 */
#ifndef MCUD_SIGNAL_SHIFT_H
#define MCUD_SIGNAL_SHIFT_H

#include "mcud.h"

typedef struct {
    int32_t count;
} mcud_signal_shift_params;

mcud_kernel mcud_signal_shift;

#endif
