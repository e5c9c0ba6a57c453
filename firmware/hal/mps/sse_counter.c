/* System counter of the SSE-300 subsystem: the low word of its 64 bits. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define CONTROL (MCUD_TIMER_BASE + 0x0000u)
#define STATUS_COUNT_LOW (MCUD_TIMER_BASE + 0x1000u)

void timer_init(void)
{
    reg_set(CONTROL, 1u);
}

uint32_t hal_ticks(void)
{
    return reg_read(STATUS_COUNT_LOW);
}

uint32_t hal_ticks_hz(void)
{
    return MCUD_TIMER_HZ;
}
