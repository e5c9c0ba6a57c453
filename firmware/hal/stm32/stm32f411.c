/* Clocks and pins of the STM32F411: 100 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"
#include "stm32.h"

/* RM0383: 6.3 */
#define RCC_CR 0x40023800u
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_PLLCFGR 0x40023804u
#define RCC_PLLCFGR_PLLM(n) ((n) << 0)
#define RCC_PLLCFGR_PLLN(n) ((n) << 6)
#define RCC_PLLCFGR_PLLP(n) ((n) << 16)
#define RCC_PLLCFGR_PLLSRC (1u << 22)
#define RCC_PLLCFGR_PLLQ(n) ((n) << 24)
#define RCC_CFGR 0x40023808u
#define RCC_CFGR_SW(n) ((n) << 0)
#define RCC_CFGR_SWS(n) ((n) << 2)
#define RCC_CFGR_PPRE1(n) ((n) << 10)
#define RCC_AHB1ENR 0x40023830u
#define RCC_AHB1ENR_GPIOAEN (1u << 0)
#define RCC_APB1ENR 0x40023840u
#define RCC_APB1ENR_USART2EN (1u << 17)
#define RCC_APB1ENR_PWREN (1u << 28)

/* RM0383: 5.4.1 */
#define PWR_CR 0x40007000u
#define PWR_CR_VOS(n) ((n) << 14)

/* RM0383: 3.8.1 */
#define FLASH_ACR 0x40023C00u
#define FLASH_ACR_LATENCY(n) ((n) << 0)
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_DCEN (1u << 10)

#define GPIOA 0x40020000u

#define HSI_HZ 16000000u
#define PLL_HZ 100000000u
#define PLL 2u

static uint32_t core_hz = HSI_HZ;
static uint32_t apb1_hz = HSI_HZ;

/* 16 MHz / 8 * 100 / 2 = 100 MHz; APB1 at half. Stays on the oscillator when the PLL fails. */
static void start_pll(void)
{
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    reg_change(PWR_CR, PWR_CR_VOS(3u), PWR_CR_VOS(3u)); /* voltage scale 1, needed above 84 MHz */
    reg_change(RCC_PLLCFGR,
               RCC_PLLCFGR_PLLM(63u) | RCC_PLLCFGR_PLLN(511u) | RCC_PLLCFGR_PLLP(3u) | RCC_PLLCFGR_PLLSRC
                   | RCC_PLLCFGR_PLLQ(15u),
               RCC_PLLCFGR_PLLM(8u) | RCC_PLLCFGR_PLLN(100u) | RCC_PLLCFGR_PLLP(0u) | RCC_PLLCFGR_PLLQ(5u));
    reg_set(RCC_CR, RCC_CR_PLLON);
    if (!reg_wait(RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY, READY_ATTEMPTS)) {
        return;
    }
    /* Three wait states from 90 MHz on, at 3.3 V. */
    reg_write(FLASH_ACR, FLASH_ACR_LATENCY(3u) | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | FLASH_ACR_DCEN);
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(7u), FLASH_ACR_LATENCY(3u), READY_ATTEMPTS)) {
        return;
    }
    reg_change(RCC_CFGR, RCC_CFGR_PPRE1(7u), RCC_CFGR_PPRE1(4u));
    reg_change(RCC_CFGR, RCC_CFGR_SW(3u), RCC_CFGR_SW(PLL));
    if (!reg_wait(RCC_CFGR, RCC_CFGR_SWS(3u), RCC_CFGR_SWS(PLL), READY_ATTEMPTS)) {
        reg_change(RCC_CFGR, RCC_CFGR_SW(3u) | RCC_CFGR_PPRE1(7u), 0u);
        return;
    }
    core_hz = PLL_HZ;
    apb1_hz = PLL_HZ / 2u;
}

void hal_init(void)
{
    start_pll();
    clock_enable(RCC_AHB1ENR, RCC_AHB1ENR_GPIOAEN);
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_USART2EN);
    gpio_alternate(GPIOA, 2u, 7u);
    gpio_alternate(GPIOA, 3u, 7u);
    timer_init();
    uart_init(MCUD_UART_BASE, apb1_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
