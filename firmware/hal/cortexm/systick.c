/* SysTick, 24 bits counting down, extended to 32 by its interrupt: for chips whose emulation has nothing better. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define SYST_CSR (MCUD_TIMER_BASE + 0x0u)
#define SYST_RVR (MCUD_TIMER_BASE + 0x4u)
#define SYST_CVR (MCUD_TIMER_BASE + 0x8u)
#define SCB_ICSR 0xE000ED04u

#define CSR_ENABLE_INTERRUPT_CORE_CLOCK 7u
#define ICSR_PENDSTSET (1u << 26)
#define PERIOD 0x1000000u

static volatile uint32_t elapsed; /* ticks of whole periods */

void core_timer_interrupt(void)
{
    elapsed += PERIOD;
}

void timer_init(void)
{
    reg_write(SYST_RVR, PERIOD - 1u);
    reg_write(SYST_CVR, 0);
    reg_write(SYST_CSR, CSR_ENABLE_INTERRUPT_CORE_CLOCK);
}

uint32_t hal_ticks(void)
{
    core_interrupts_off();
    uint32_t value = reg_read(SYST_CVR);
    uint32_t periods = elapsed;
    if ((reg_read(SCB_ICSR) & ICSR_PENDSTSET) != 0u) { /* wrapped, but its interrupt could not run yet */
        value = reg_read(SYST_CVR);
        periods += PERIOD;
    }
    core_interrupts_on();
    return periods + (PERIOD - 1u - value);
}

uint32_t hal_ticks_hz(void)
{
    return MCUD_TIMER_HZ;
}

const char *hal_ticks_name(void)
{
    return MCUD_TIMER_UNIT;
}
