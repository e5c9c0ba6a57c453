/* Clocks and pins of the STM32F411: 100 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "pll_f4.h"
#include "registers.h"
#include "stm32.h"

/* RM0383: 6.3 */
#define RCC_AHB1ENR_GPIOAEN (1u << 0)
#define RCC_APB1ENR_USART2EN (1u << 17)

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
#define USART2 0x40004400u

#if MCUD_UART_BASE != USART2
#error "this HAL drives USART2: see base of [uart] in the board file"
#endif

#define PLL_MHZ 100u

static uint32_t core_hz = HSI_HZ;
static uint32_t apb1_hz = HSI_HZ;

/* APB1 at half. Stays on the oscillator when the PLL fails. */
static void start_pll(void)
{
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    reg_change(PWR_CR, PWR_CR_VOS(3u), PWR_CR_VOS(3u)); /* voltage scale 1, needed above 84 MHz */
    if (!pll_lock(PLL_MHZ, 5u)) {
        return;
    }
    /* Three wait states from 90 MHz on, at 3.3 V. */
    reg_write(FLASH_ACR, FLASH_ACR_LATENCY(3u) | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | FLASH_ACR_DCEN);
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(7u), FLASH_ACR_LATENCY(3u), READY_ATTEMPTS)
        || !pll_use(APB_HALF, APB_ALL)) {
        return;
    }
    core_hz = PLL_MHZ * 1000000u;
    apb1_hz = core_hz / 2u;
}

void hal_init(void)
{
    start_pll();
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_USART2EN);
    usart_pin(RCC_AHB1ENR, RCC_AHB1ENR_GPIOAEN, GPIOA, MCUD_UART_TX_PIN);
    usart_pin(RCC_AHB1ENR, RCC_AHB1ENR_GPIOAEN, GPIOA, MCUD_UART_RX_PIN);
    timer_init();
    uart_init(MCUD_UART_BASE, apb1_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
