/* SDRAM at the FMC of STM32F7 and H7. Call the functions in this order. */
#ifndef MCUD_FMC_SDRAM_H
#define MCUD_FMC_SDRAM_H

#include <stdint.h>

/* Sets up the pins that the board file names. The arguments are those of peripheral_pin(). */
void fmc_sdram_pins(uintptr_t enable_register, uint32_t enable_a, uintptr_t port_a);

/* Sets geometry and times for the clock `fmc_hz` of the FMC at address `fmc`; the clock must run. */
void fmc_sdram_configure(uintptr_t fmc, uint32_t fmc_hz);

/* Sends the commands after which the memory answers, and starts its refresh. The timer must run. */
void fmc_sdram_power_up(uintptr_t fmc, uint32_t fmc_hz);

#endif
