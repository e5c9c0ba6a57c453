/* SDRAM at the FMC of STM32F7 and H7, in the order of its functions. */
#ifndef MCUD_FMC_SDRAM_H
#define MCUD_FMC_SDRAM_H

#include <stdint.h>

/* The pins that the board file names. The arguments are those of peripheral_pin(). */
void fmc_sdram_pins(uintptr_t enable_register, uint32_t enable_a, uintptr_t port_a);

/* Geometry and times, for the clock `fmc_hz` of the block at `fmc`, which runs. */
void fmc_sdram_configure(uintptr_t fmc, uint32_t fmc_hz);

/* The commands after which the memory answers; needs the timer. It is refreshed from now on. */
void fmc_sdram_power_up(uintptr_t fmc, uint32_t fmc_hz);

#endif
