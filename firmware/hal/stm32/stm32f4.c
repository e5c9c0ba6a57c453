/* Clocks and pins of the STM32F405: 168 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "pll_f4.h"
#include "registers.h"

#define RCC_APB2ENR 0x40023844u
#define PWR_CR 0x40007000u
#define FLASH_ACR 0x40023C00u
#define GPIOA_MODER 0x40020000u
#define GPIOA_OSPEEDR 0x40020008u
#define GPIOA_PUPDR 0x4002000Cu
#define GPIOA_AFRL 0x40020020u
#define GPIOA_AFRH 0x40020024u
#define GPIOB_MODER 0x40020400u
#define GPIOB_OSPEEDR 0x40020408u
#define GPIOB_PUPDR 0x4002040Cu
#define GPIOB_AFRH 0x40020424u

#define PLL_MHZ 168u

static uint32_t core_hz = HSI_HZ;
static uint32_t apb1_hz = HSI_HZ;
static uint32_t apb2_hz = HSI_HZ;

/* APB1 at a quarter, APB2 at half. Stays on the oscillator when the PLL fails, as in an emulator. */
static void start_pll(void)
{
    reg_set(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    reg_set(PWR_CR, 1u << 14); /* voltage scale 1, needed above 144 MHz */
    if (!pll_lock(PLL_MHZ, 7u)) {
        return;
    }
    /* Five wait states at 168 MHz and 3.3 V; prefetch, instruction and data cache on. */
    reg_write(FLASH_ACR, 5u | (1u << 8) | (1u << 9) | (1u << 10));
    if (!reg_wait(FLASH_ACR, 7u, 5u, READY_ATTEMPTS) || !pll_use(APB_QUARTER, APB_HALF)) {
        return;
    }
    core_hz = PLL_MHZ * 1000000u;
    apb1_hz = core_hz / 4u;
    apb2_hz = core_hz / 2u;
}

void hal_init(void)
{
    start_pll();
    reg_set(RCC_AHB1ENR, 1u << 0);                       /* GPIOA */
    reg_set(RCC_APB2ENR, 1u << 4);                       /* USART1 */
    reg_change(GPIOA_AFRH, 0xFF0u, 0x770u);              /* PA9, PA10: alternate function 7 */
    reg_change(GPIOA_MODER, 0xFu << 18, 0xAu << 18);
    reg_change(GPIOA_OSPEEDR, 0xFu << 18, 0x5u << 18);
    timer_init();
    uart_init(MCUD_UART_BASE, apb2_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t port_init(void)
{
    reg_set(RCC_AHB1ENR, 3u << 0);                       /* GPIOA, GPIOB */
    reg_set(RCC_APB1ENR, 3u << 17);                      /* USART2, USART3 */
    reg_change(GPIOA_AFRL, 0xFF00u, 0x7700u);            /* PA2, PA3: alternate function 7 */
    reg_change(GPIOA_PUPDR, 0xC0u, 0x40u);               /* PA3 pulled up: quiet where nothing is connected */
    reg_change(GPIOA_MODER, 0xFu << 4, 0xAu << 4);
    reg_change(GPIOA_OSPEEDR, 0xFu << 4, 0x5u << 4);
    reg_change(GPIOB_AFRH, 0xFF00u, 0x7700u);            /* PB10, PB11: alternate function 7 */
    reg_change(GPIOB_PUPDR, 3u << 22, 1u << 22);         /* PB11 too */
    reg_change(GPIOB_MODER, 0xFu << 20, 0xAu << 20);
    reg_change(GPIOB_OSPEEDR, 0xFu << 20, 0x5u << 20);
    return apb1_hz;
}

uint32_t hal_clock_hz(void)
{
    return MCUD_EMULATED ? MCUD_CLOCK_HZ : core_hz; /* a machine without clock tree runs at its nominal rate */
}
