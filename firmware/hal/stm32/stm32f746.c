/* Clocks, pins and caches of the STM32F746: 216 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "cortexm_cache.h"
#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"
#include "stm32.h"

/* RM0385: 5.3 */
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
#define RCC_CFGR_PPRE2(n) ((n) << 13)
#define RCC_AHB1ENR 0x40023830u
#define RCC_AHB1ENR_GPIODEN (1u << 3)
#define RCC_APB1ENR 0x40023840u
#define RCC_APB1ENR_USART3EN (1u << 18)
#define RCC_APB1ENR_PWREN (1u << 28)

/* RM0385: 4.4 */
#define PWR_CR1 0x40007000u
#define PWR_CR1_VOS(n) ((n) << 14)
#define PWR_CR1_ODEN (1u << 16)
#define PWR_CR1_ODSWEN (1u << 17)
#define PWR_CSR1 0x40007004u
#define PWR_CSR1_ODRDY (1u << 16)
#define PWR_CSR1_ODSWRDY (1u << 17)

/* RM0385: 3.7.1 */
#define FLASH_ACR 0x40023C00u
#define FLASH_ACR_LATENCY(n) ((n) << 0)

#define GPIOD 0x40020C00u

#define HSI_HZ 16000000u
#define PLL_HZ 216000000u
#define PLL 2u

static uint32_t core_hz = HSI_HZ;
static uint32_t apb1_hz = HSI_HZ;

/* Above 180 MHz the regulator needs its over-drive mode, which is entered in two steps while the PLL runs. */
static int32_t start_over_drive(void)
{
    reg_set(PWR_CR1, PWR_CR1_ODEN);
    if (!reg_wait(PWR_CSR1, PWR_CSR1_ODRDY, PWR_CSR1_ODRDY, READY_ATTEMPTS)) {
        return 0;
    }
    reg_set(PWR_CR1, PWR_CR1_ODSWEN);
    return reg_wait(PWR_CSR1, PWR_CSR1_ODSWRDY, PWR_CSR1_ODSWRDY, READY_ATTEMPTS);
}

/* 16 MHz / 8 * 216 / 2 = 216 MHz; APB1 at a quarter, APB2 at half. Stays on the oscillator when the PLL fails. */
static void start_pll(void)
{
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    reg_change(PWR_CR1, PWR_CR1_VOS(3u), PWR_CR1_VOS(3u)); /* voltage scale 1 */
    reg_change(RCC_PLLCFGR,
               RCC_PLLCFGR_PLLM(63u) | RCC_PLLCFGR_PLLN(511u) | RCC_PLLCFGR_PLLP(3u) | RCC_PLLCFGR_PLLSRC
                   | RCC_PLLCFGR_PLLQ(15u),
               RCC_PLLCFGR_PLLM(8u) | RCC_PLLCFGR_PLLN(216u) | RCC_PLLCFGR_PLLP(0u) | RCC_PLLCFGR_PLLQ(9u));
    reg_set(RCC_CR, RCC_CR_PLLON);
    if (!reg_wait(RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY, READY_ATTEMPTS) || !start_over_drive()) {
        return;
    }
    reg_write(FLASH_ACR, FLASH_ACR_LATENCY(7u)); /* from 210 MHz on, at 3.3 V */
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(15u), FLASH_ACR_LATENCY(7u), READY_ATTEMPTS)) {
        return;
    }
    reg_change(RCC_CFGR, RCC_CFGR_PPRE1(7u) | RCC_CFGR_PPRE2(7u), RCC_CFGR_PPRE1(5u) | RCC_CFGR_PPRE2(4u));
    reg_change(RCC_CFGR, RCC_CFGR_SW(3u), RCC_CFGR_SW(PLL));
    if (!reg_wait(RCC_CFGR, RCC_CFGR_SWS(3u), RCC_CFGR_SWS(PLL), READY_ATTEMPTS)) {
        reg_change(RCC_CFGR, RCC_CFGR_SW(3u) | RCC_CFGR_PPRE1(7u) | RCC_CFGR_PPRE2(7u), 0u);
        return;
    }
    core_hz = PLL_HZ;
    apb1_hz = PLL_HZ / 4u;
}

void hal_init(void)
{
    start_pll();
    external_memory_off();
    caches_on();
    clock_enable(RCC_AHB1ENR, RCC_AHB1ENR_GPIODEN);
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_USART3EN);
    gpio_alternate(GPIOD, 8u, 7u);
    gpio_alternate(GPIOD, 9u, 7u);
    timer_init();
    uart_init(MCUD_UART_BASE, apb1_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
