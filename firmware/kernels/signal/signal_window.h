/* Samples times a window: x * weights / 2^shift, rounded down, saturated.
 *
 * in[0]    int16_t [rows][1][count]
 * out      int16_t [rows][1][count]
 */
#ifndef MCUD_SIGNAL_WINDOW_H
#define MCUD_SIGNAL_WINDOW_H

#include "mcud.h"

typedef struct {
    const int16_t *weights; /* [count] */
    int32_t count;
    int32_t shift; /* 0..31 */
} mcud_signal_window_params;

mcud_kernel mcud_signal_window;

#endif
