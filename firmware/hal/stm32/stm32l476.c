/* Clocks and pins of the STM32L476: 80 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"
#include "stm32.h"

/* RM0351: 6.4 */
#define RCC_CR 0x40021000u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_CFGR 0x40021008u
#define RCC_CFGR_SW(n) ((n) << 0)
#define RCC_CFGR_SWS(n) ((n) << 2)
#define RCC_PLLCFGR 0x4002100Cu
#define RCC_PLLCFGR_PLLSRC(n) ((n) << 0)
#define RCC_PLLCFGR_PLLM(n) ((n) << 4)
#define RCC_PLLCFGR_PLLN(n) ((n) << 8)
#define RCC_PLLCFGR_PLLREN (1u << 24)
#define RCC_PLLCFGR_PLLR(n) ((n) << 25)
#define RCC_AHB2ENR 0x4002104Cu
#define RCC_AHB2ENR_GPIOAEN (1u << 0)
#define RCC_APB1ENR1 0x40021058u
#define RCC_APB1ENR1_USART2EN (1u << 17)

/* RM0351: 3.7.1 */
#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY(n) ((n) << 0)
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_DCEN (1u << 10)

#define GPIOA 0x48000000u
#define USART2 0x40004400u

#if MCUD_UART_BASE != USART2
#error "this HAL drives USART2: see base of [uart] in the board file"
#endif

#define MSI_HZ 4000000u
#define PLL_HZ 80000000u
#define PLL_FROM_HSI 2u
#define PLL 3u

static uint32_t core_hz = MSI_HZ;

/* 16 MHz * 10 / 2 = 80 MHz, all buses too; voltage range 1 is that of reset. Stays on the oscillator of reset (MSI)
 * when the other or the PLL fails. */
static void start_pll(void)
{
    reg_set(RCC_CR, RCC_CR_HSION);
    if (!reg_wait(RCC_CR, RCC_CR_HSIRDY, RCC_CR_HSIRDY, READY_ATTEMPTS)) {
        return;
    }
    reg_change(RCC_PLLCFGR,
               RCC_PLLCFGR_PLLSRC(3u) | RCC_PLLCFGR_PLLM(7u) | RCC_PLLCFGR_PLLN(127u) | RCC_PLLCFGR_PLLR(3u),
               RCC_PLLCFGR_PLLSRC(PLL_FROM_HSI) | RCC_PLLCFGR_PLLM(0u) | RCC_PLLCFGR_PLLN(10u) | RCC_PLLCFGR_PLLR(0u));
    reg_set(RCC_CR, RCC_CR_PLLON);
    reg_set(RCC_PLLCFGR, RCC_PLLCFGR_PLLREN);
    if (!reg_wait(RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY, READY_ATTEMPTS)) {
        return;
    }
    /* Four wait states from 64 MHz on. */
    reg_write(FLASH_ACR, FLASH_ACR_LATENCY(4u) | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | FLASH_ACR_DCEN);
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(7u), FLASH_ACR_LATENCY(4u), READY_ATTEMPTS)) {
        return;
    }
    reg_change(RCC_CFGR, RCC_CFGR_SW(3u), RCC_CFGR_SW(PLL));
    if (!reg_wait(RCC_CFGR, RCC_CFGR_SWS(3u), RCC_CFGR_SWS(PLL), READY_ATTEMPTS)) {
        reg_change(RCC_CFGR, RCC_CFGR_SW(3u), 0u);
        return;
    }
    core_hz = PLL_HZ;
}

void hal_init(void)
{
    start_pll();
    clock_enable(RCC_APB1ENR1, RCC_APB1ENR1_USART2EN);
    usart_pin(RCC_AHB2ENR, RCC_AHB2ENR_GPIOAEN, GPIOA, MCUD_UART_TX_PIN);
    usart_pin(RCC_AHB2ENR, RCC_AHB2ENR_GPIOAEN, GPIOA, MCUD_UART_RX_PIN);
    timer_init();
    uart_init(MCUD_UART_BASE, core_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
