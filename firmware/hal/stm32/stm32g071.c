/* Clocks and pins of the STM32G071: 64 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"
#include "stm32.h"

/* RM0444: 5.4. It calls RCC_PLLSYSCFGR RCC_PLLCFGR. */
#define RCC_CR 0x40021000u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_HSIDIV(n) ((n) << 11)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_CFGR 0x40021008u
#define RCC_CFGR_SW(n) ((n) << 0)
#define RCC_CFGR_SWS(n) ((n) << 3)
#define RCC_PLLSYSCFGR 0x4002100Cu
#define RCC_PLLSYSCFGR_PLLSRC(n) ((n) << 0)
#define RCC_PLLSYSCFGR_PLLM(n) ((n) << 4)
#define RCC_PLLSYSCFGR_PLLN(n) ((n) << 8)
#define RCC_PLLSYSCFGR_PLLREN (1u << 28)
#define RCC_PLLSYSCFGR_PLLR(n) ((n) << 29)
#define RCC_IOPENR 0x40021034u
#define RCC_IOPENR_IOPAEN (1u << 0)
#define RCC_APBENR1 0x4002103Cu
#define RCC_APBENR1_USART2EN (1u << 17)

/* RM0444: 3.7.1 */
#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY(n) ((n) << 0)
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)

#define GPIOA 0x50000000u
#define USART2 0x40004400u

#if MCUD_UART_BASE != USART2
#error "this HAL drives USART2: see base of [uart] in the board file"
#endif

#define HSI_HZ 16000000u
#define PLL_HZ 64000000u
#define PLL_FROM_HSI 2u
#define HALF 1u
#define PLL 2u
#define USART2_FUNCTION 1u

static uint32_t core_hz = HSI_HZ;

/* 16 MHz * 8 / 2 = 64 MHz, all buses too; voltage range 1 is that of reset. Stays on the oscillator when the PLL
 * fails. */
static void start_pll(void)
{
    reg_set(RCC_CR, RCC_CR_HSION);
    reg_change(RCC_CR, RCC_CR_HSIDIV(7u), 0u);
    if (!reg_wait(RCC_CR, RCC_CR_HSIRDY, RCC_CR_HSIRDY, READY_ATTEMPTS)) {
        return;
    }
    reg_change(RCC_PLLSYSCFGR,
               RCC_PLLSYSCFGR_PLLSRC(3u) | RCC_PLLSYSCFGR_PLLM(7u) | RCC_PLLSYSCFGR_PLLN(127u) | RCC_PLLSYSCFGR_PLLR(7u),
               RCC_PLLSYSCFGR_PLLSRC(PLL_FROM_HSI) | RCC_PLLSYSCFGR_PLLM(0u) | RCC_PLLSYSCFGR_PLLN(8u) |
                   RCC_PLLSYSCFGR_PLLR(HALF));
    reg_set(RCC_CR, RCC_CR_PLLON);
    reg_set(RCC_PLLSYSCFGR, RCC_PLLSYSCFGR_PLLREN);
    if (!reg_wait(RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY, READY_ATTEMPTS)) {
        return;
    }
    /* Two wait states from 48 MHz on. */
    reg_change(FLASH_ACR, FLASH_ACR_LATENCY(7u) | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN,
               FLASH_ACR_LATENCY(2u) | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN);
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(7u), FLASH_ACR_LATENCY(2u), READY_ATTEMPTS)) {
        return;
    }
    reg_change(RCC_CFGR, RCC_CFGR_SW(7u), RCC_CFGR_SW(PLL));
    if (!reg_wait(RCC_CFGR, RCC_CFGR_SWS(7u), RCC_CFGR_SWS(PLL), READY_ATTEMPTS)) {
        reg_change(RCC_CFGR, RCC_CFGR_SW(7u), 0u);
        return;
    }
    core_hz = PLL_HZ;
}

void hal_init(void)
{
    start_pll();
    clock_enable(RCC_APBENR1, RCC_APBENR1_USART2EN);
    clock_enable(RCC_IOPENR, RCC_IOPENR_IOPAEN);
    gpio_alternate(GPIOA, MCUD_UART_TX_PIN, (pin_use){USART2_FUNCTION, MEDIUM_SPEED});
    gpio_alternate(GPIOA, MCUD_UART_RX_PIN, (pin_use){USART2_FUNCTION, MEDIUM_SPEED});
    timer_init();
    uart_init(MCUD_UART_BASE, core_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
