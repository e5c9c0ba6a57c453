/* The energy of each point of a spectrum; 0 outside of a range.
 *
 * in[0]    int16_t [1][1][2 * points], real and imaginary parts alternating
 * out      uint32_t [1][1][points]
 */
#ifndef MCUD_SIGNAL_ENERGY_H
#define MCUD_SIGNAL_ENERGY_H

#include "mcud.h"

typedef struct {
    int32_t points;
    int32_t first; /* the range of points */
    int32_t end;
} mcud_signal_energy_params;

mcud_kernel mcud_signal_energy;

#endif
