/* First half of the CMSDK dual timer as a free-running 32-bit counter. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define TIMER_LOAD (MCUD_TIMER_BASE + 0x00u)
#define TIMER_VALUE (MCUD_TIMER_BASE + 0x04u)
#define TIMER_CONTROL (MCUD_TIMER_BASE + 0x08u)

#define CONTROL_32_BIT (1u << 1)
#define CONTROL_ENABLE (1u << 7)

void timer_init(void)
{
    reg_write(TIMER_LOAD, 0xFFFFFFFFu);
    reg_write(TIMER_CONTROL, CONTROL_32_BIT | CONTROL_ENABLE);
}

uint32_t hal_ticks(void)
{
    return 0u - reg_read(TIMER_VALUE); /* it counts down */
}

uint32_t hal_ticks_hz(void)
{
    return MCUD_TIMER_HZ;
}
