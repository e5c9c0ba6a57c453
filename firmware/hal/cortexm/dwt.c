/* Core cycles by the data watchpoint unit: real Cortex-M3 and up (reads 0 under emulation). */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define DEMCR 0xE000EDFCu
#define DWT_CTRL (MCUD_TIMER_BASE + 0x0u)
#define DWT_CYCCNT (MCUD_TIMER_BASE + 0x4u)
#define DWT_LAR (MCUD_TIMER_BASE + 0xFB0u)
#define DWT_LAR_KEY 0xC5ACCE55u

void timer_init(void)
{
    reg_set(DEMCR, 1u << 24); /* TRCENA */
    reg_write(DWT_LAR, DWT_LAR_KEY); /* a Cortex-M7 may have it locked; others ignore this */
    reg_write(DWT_CYCCNT, 0);
    reg_set(DWT_CTRL, 1u); /* CYCCNTENA */
}

uint32_t hal_ticks(void)
{
    return reg_read(DWT_CYCCNT);
}

uint32_t hal_ticks_hz(void)
{
    return hal_clock_hz();
}
