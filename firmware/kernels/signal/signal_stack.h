/* The last frames of a sequence, which live from one run to the next; the first frame fills all of them.
 *
 * in[0]    int16_t [1][1][channels], the newest frame
 * in[1]    int16_t [1][frames][channels], oldest first
 * in[2]    int8_t [1][1][2], the second one is 1 in the first run
 * out      int16_t [1][frames][channels]; may be the memory of in[1]
 */
#ifndef MCUD_SIGNAL_STACK_H
#define MCUD_SIGNAL_STACK_H

#include "mcud.h"

typedef struct {
    int32_t frames;
    int32_t frame_bytes;
} mcud_signal_stack_params;

mcud_kernel mcud_signal_stack;

#endif
