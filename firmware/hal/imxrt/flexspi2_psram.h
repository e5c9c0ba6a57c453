/* PSRAM on the pads below a Teensy 4.1. */
#ifndef MCUD_FLEXSPI2_PSRAM_H
#define MCUD_FLEXSPI2_PSRAM_H

#include <stdint.h>

/* Sets pins and clock, and starts the memory. Returns 1, or 0 if no memory answers. */
int32_t flexspi2_psram_start(void);

#endif
