/* Microseconds, where the core has no counter of cycles. */
#include <Arduino.h>

extern "C" {
#include "hal_parts.h"
#include "mcud_hal.h"
}

void timer_init(void)
{
}

uint32_t hal_ticks(void)
{
    return static_cast<uint32_t>(micros());
}

uint32_t hal_ticks_hz(void)
{
    return 1000000u;
}
