/* The hart's cycle counter, low word; under icount it counts virtual nanoseconds. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"

__asm__(".option arch, +zicsr");

void timer_init(void)
{
}

uint32_t hal_ticks(void)
{
    uint32_t value;
    __asm__ volatile("csrr %0, mcycle" : "=r"(value) : : "memory");
    return value;
}

uint32_t hal_ticks_hz(void)
{
    return MCUD_TIMER_HZ;
}
