/* Clocks, pins and caches of the STM32F746: 216 MHz from the internal oscillator, so that no board's crystal matters. */
#include <stdint.h>

#include "cortexm_cache.h"
#include "fmc_sdram.h"
#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "pll_f4.h"
#include "registers.h"
#include "stm32.h"

/* RM0385: 5.3 */
#define RCC_AHB1ENR_GPIOAEN (1u << 0)
#define RCC_AHB3ENR 0x40023838u
#define RCC_AHB3ENR_FMCEN (1u << 0)
#define RCC_APB1ENR_USART3EN (1u << 18)
#define RCC_APB2ENR 0x40023844u
#define RCC_APB2ENR_USART1EN (1u << 4)

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

#define FMC 0xA0000000u
#define GPIOA 0x40020000u
#define USART1 0x40011000u
#define USART3 0x40004800u

#if MCUD_UART_BASE != USART1 && MCUD_UART_BASE != USART3
#error "this HAL drives USART1 and USART3: see base of [uart] in the board file"
#endif

#define PLL_MHZ 216u

static uint32_t core_hz = HSI_HZ;
static uint32_t apb1_hz = HSI_HZ;
static uint32_t apb2_hz = HSI_HZ;

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

/* APB1 at a quarter, APB2 at half. Stays on the oscillator when the PLL fails. */
static void start_pll(void)
{
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    reg_change(PWR_CR1, PWR_CR1_VOS(3u), PWR_CR1_VOS(3u)); /* voltage scale 1 */
    if (!pll_lock(PLL_MHZ, 9u) || !start_over_drive()) {
        return;
    }
    reg_write(FLASH_ACR, FLASH_ACR_LATENCY(7u)); /* from 210 MHz on, at 3.3 V */
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(15u), FLASH_ACR_LATENCY(7u), READY_ATTEMPTS)
        || !pll_use(APB_QUARTER, APB_HALF)) {
        return;
    }
    core_hz = PLL_MHZ * 1000000u;
    apb1_hz = core_hz / 4u;
    apb2_hz = core_hz / 2u;
}

/* Starts the clock of the line to the host, and returns its rate in Hz. */
static uint32_t start_usart(void)
{
#if MCUD_UART_BASE == USART1
    clock_enable(RCC_APB2ENR, RCC_APB2ENR_USART1EN);
    return apb2_hz;
#else
    clock_enable(RCC_APB1ENR, RCC_APB1ENR_USART3EN);
    return apb1_hz;
#endif
}

/* Starts the SDRAM of a board that has it; the FMC has the core's clock. */
static void start_sdram(void)
{
#ifdef MCUD_SDRAM_ORIGIN
    clock_enable(RCC_AHB3ENR, RCC_AHB3ENR_FMCEN);
    fmc_sdram_pins(RCC_AHB1ENR, RCC_AHB1ENR_GPIOAEN, GPIOA);
    fmc_sdram_configure(FMC, core_hz);
    fmc_sdram_power_up(FMC, core_hz);
    external_memory_try(MCUD_SDRAM_ORIGIN, MCUD_SDRAM_LOG2_BYTES);
#endif
}

void hal_init(void)
{
    start_pll();
    external_memory_off();
    caches_on();
    const uint32_t usart_hz = start_usart();
    usart_pin(RCC_AHB1ENR, RCC_AHB1ENR_GPIOAEN, GPIOA, MCUD_UART_TX_PIN);
    usart_pin(RCC_AHB1ENR, RCC_AHB1ENR_GPIOAEN, GPIOA, MCUD_UART_RX_PIN);
    timer_init();
    start_sdram();
    uart_init(MCUD_UART_BASE, usart_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
