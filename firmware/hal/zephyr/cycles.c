/* Zephyr's counter, for cores without a counter of cycles. */
#include <stdint.h>

#include <zephyr/kernel.h>

#include "hal_parts.h"
#include "mcud_hal.h"

void timer_init(void)
{
}

uint32_t hal_ticks(void)
{
    return k_cycle_get_32();
}

uint32_t hal_ticks_hz(void)
{
    return (uint32_t)sys_clock_hw_cycles_per_sec();
}
