/* PSRAM on the pads below a Teensy 4.1. */
#ifndef MCUD_FLEXSPI2_PSRAM_H
#define MCUD_FLEXSPI2_PSRAM_H

#include <stdint.h>

/* Pins, clock and commands after which the memory answers; 0 if there is none. */
int32_t flexspi2_psram_start(void);

#endif
