/* TIMER0 of the nRF51: 32 bits at 16 MHz, the clock of the core. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define TASKS_START (MCUD_TIMER_BASE + 0x000u)
#define TASKS_CAPTURE0 (MCUD_TIMER_BASE + 0x040u)
#define MODE (MCUD_TIMER_BASE + 0x504u)
#define BITMODE (MCUD_TIMER_BASE + 0x508u)
#define PRESCALER (MCUD_TIMER_BASE + 0x510u)
#define CC0 (MCUD_TIMER_BASE + 0x540u)

void timer_init(void)
{
    reg_write(MODE, 0);
    reg_write(BITMODE, 3u); /* 32 bits */
    reg_write(PRESCALER, 0);
    reg_write(TASKS_START, 1u);
}

uint32_t hal_ticks(void)
{
    reg_write(TASKS_CAPTURE0, 1u);
    return reg_read(CC0);
}

uint32_t hal_ticks_hz(void)
{
    return MCUD_TIMER_HZ;
}
