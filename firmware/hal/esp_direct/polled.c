/* The core of an ESP32 chip without ESP-IDF. Its port is polled: the FIFO holds 128 bytes, the host sends one frame at a
 * time, and no interrupt disturbs a step that is timed.
 */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"

void direct_boot_fault(void); /* called by boot.S */

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}

void core_interrupts_off(void)
{
}

void core_interrupts_on(void)
{
}

/* A sleep would need an interrupt that ends it; polling an empty FIFO costs nothing. */
void core_sleep(void)
{
}

void core_irq(uint32_t irq, int32_t on)
{
    (void)irq;
    (void)on;
}

void direct_boot_fault(void)
{
    hal_exit(EXIT_FAULT);
}
