/* SysTick, 24 bits counting down, extended by its interrupt: for cores without a cycle counter, and for chips whose
 * emulation has nothing better.
 *
 * Under emulation the ticks of the interrupt are subtracted, so that measured code counts the same for any number of
 * periods that end within it. On hardware they are about 40 cycles of 16 million, and stay.
 */
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

/* Ticks that one run of the interrupt takes under emulation, in 1/256. */
#define INTERRUPT_INSTRUCTIONS 5ull
#ifdef MCUD_ICOUNT_SHIFT
#define INTERRUPT_TICKS_Q8 \
    ((uint32_t)(((INTERRUPT_INSTRUCTIONS * MCUD_TIMER_HZ) << (MCUD_ICOUNT_SHIFT + 8)) / 1000000000ull))
#else
#define INTERRUPT_TICKS_Q8 0u
#endif

static volatile uint32_t periods; /* that ended, counted by the interrupt */

/* Counts a period, in exactly INTERRUPT_INSTRUCTIONS. */
__attribute__((naked)) void core_timer_interrupt(void)
{
    __asm__ volatile(".syntax unified\n\t" /* not the default of compilers for Cortex-M0+ */
                     "ldr r0, =%c0\n\t"
                     "ldr r1, [r0]\n\t"
                     "adds r1, #1\n\t"
                     "str r1, [r0]\n\t"
                     "bx lr"
                     :
                     : "i"(&periods));
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
    const uint32_t counted = periods;
    uint32_t ended = counted;
    if ((reg_read(SCB_ICSR) & ICSR_PENDSTSET) != 0u) { /* wrapped, but its interrupt could not run yet */
        /* It became pending at 0, a cycle before the period ends; this read comes later. */
        value = reg_read(SYST_CVR);
        ended++;
    }
    core_interrupts_on();
    return ended * PERIOD + (PERIOD - 1u - value) - ((counted * INTERRUPT_TICKS_Q8) >> 8);
}

uint32_t hal_ticks_hz(void)
{
    return MCUD_TIMER_HZ;
}
