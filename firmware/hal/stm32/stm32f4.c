/* Clocks and pins of STM32F405 and F407: 168 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "pll_f4.h"
#include "registers.h"
#include "stm32.h"

/* RM0090: 7.3 */
#define RCC_AHB1ENR_GPIOAEN (1u << 0)
#define RCC_APB1ENR_USART2EN (1u << 17)
#define RCC_APB1ENR_USART3EN (1u << 18)
#define RCC_APB2ENR 0x40023844u
#define RCC_APB2ENR_USART1EN (1u << 4)

/* RM0090: 5.4.1 */
#define PWR_CR 0x40007000u
#define PWR_CR_VOS (1u << 14)

/* RM0090: 3.9.1 */
#define FLASH_ACR 0x40023C00u
#define FLASH_ACR_LATENCY(n) ((n) << 0)
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_DCEN (1u << 10)

#define GPIOA 0x40020000u
#define USART1 0x40011000u

#define USART2 0x40004400u

#if MCUD_UART_BASE != USART1 && MCUD_UART_BASE != USART2
#error "this HAL drives USART1 and USART2: see base of [uart] in the board file"
#endif

/* Pins of the lines to other boards: PA2, PA3, PB10 and PB11. */
#define USART2_TX 2u
#define USART2_RX 3u
#define USART3_TX (PORT_PINS + 10u)
#define USART3_RX (PORT_PINS + 11u)

#define PLL_MHZ 168u

static uint32_t core_hz = HSI_HZ;
static uint32_t apb1_hz = HSI_HZ;
static uint32_t apb2_hz = HSI_HZ;

/* APB1 at a quarter, APB2 at half. Stays on the oscillator when the PLL fails, as in an emulator. */
static void start_pll(void)
{
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    reg_set(PWR_CR, PWR_CR_VOS); /* voltage scale 1, needed above 144 MHz */
    if (!pll_lock(PLL_MHZ, 7u)) {
        return;
    }
    /* Five wait states at 168 MHz and 3.3 V; prefetch, instruction and data cache on. */
    reg_write(FLASH_ACR, FLASH_ACR_LATENCY(5u) | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | FLASH_ACR_DCEN);
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(7u), FLASH_ACR_LATENCY(5u), READY_ATTEMPTS)
        || !pll_use(APB_QUARTER, APB_HALF)) {
        return;
    }
    core_hz = PLL_MHZ * 1000000u;
    apb1_hz = core_hz / 4u;
    apb2_hz = core_hz / 2u;
}

static void line_pin(uint32_t pin)
{
    usart_pin(RCC_AHB1ENR, RCC_AHB1ENR_GPIOAEN, GPIOA, pin);
}

void hal_init(void)
{
    const uint32_t first = MCUD_UART_BASE == USART1;
    start_pll();
    if (first) {
        clock_enable(RCC_APB2ENR, RCC_APB2ENR_USART1EN);
    } else {
        clock_enable(RCC_APB1ENR, RCC_APB1ENR_USART2EN);
    }
    line_pin(MCUD_UART_TX_PIN);
    line_pin(MCUD_UART_RX_PIN);
    timer_init();
    uart_init(MCUD_UART_BASE, first ? apb2_hz : apb1_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t port_init(void)
{
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_USART2EN | RCC_APB1ENR_USART3EN);
    line_pin(USART2_TX);
    line_pin(USART2_RX);
    line_pin(USART3_TX);
    line_pin(USART3_RX);
    return apb1_hz;
}

uint32_t hal_clock_hz(void)
{
    return MCUD_EMULATED ? MCUD_CLOCK_HZ : core_hz; /* a machine without clock tree runs at its nominal rate */
}
