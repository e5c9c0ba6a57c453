/* Clocks and pins of the STM32F100: 24 MHz, its maximum, from the internal oscillator. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define RCC_CR 0x40021000u
#define RCC_CFGR 0x40021004u
#define RCC_APB2ENR 0x40021018u
#define GPIOA_CRH 0x40010804u
#define GPIOA_ODR 0x4001080Cu
#define GPIOA_ODR_ODR10 (1u << 10)

#define CR_PLLON (1u << 24)
#define CR_PLLRDY (1u << 25)

#define HSI_HZ 8000000u
#define READY_ATTEMPTS 100000u /* far above the data sheet's 200 us; an emulator is never ready */

static uint32_t core_hz = HSI_HZ;

/* 8 MHz / 2 * 6 = 24 MHz for the core and both buses; flash needs no wait states. */
static void start_pll(void)
{
    reg_change(RCC_CFGR, 0x3F0000u, 4u << 18);
    reg_set(RCC_CR, CR_PLLON);
    if (!reg_wait(RCC_CR, CR_PLLRDY, CR_PLLRDY, READY_ATTEMPTS)) {
        return;
    }
    reg_change(RCC_CFGR, 3u, 2u);
    if (!reg_wait(RCC_CFGR, 3u << 2, 2u << 2, READY_ATTEMPTS)) {
        reg_change(RCC_CFGR, 3u, 0u);
        return;
    }
    core_hz = 24000000u;
}

void hal_init(void)
{
    start_pll();
    reg_set(RCC_APB2ENR, (1u << 2) | (1u << 14));   /* GPIOA, USART1 */
    reg_set(GPIOA_ODR, GPIOA_ODR_ODR10);            /* the pull of PA10 is up: quiet if nothing is connected */
    reg_change(GPIOA_CRH, 0xFF0u, 0x8B0u);          /* PA9 alternate push-pull 50 MHz, PA10 input with its pull */
    timer_init();
    uart_init(MCUD_UART_BASE, core_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_EMULATED ? MCUD_CLOCK_HZ : core_hz; /* a machine without clock tree runs at its nominal rate */
}
