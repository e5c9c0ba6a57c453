/* Clocks, pins and caches of the STM32H743: 480 MHz from the internal oscillator, so that no board's crystal matters;
 * 400 MHz on silicon of revision Y, which lacks the higher voltage. */
#include <stdint.h>

#include "cortexm_cache.h"
#include "fmc_sdram.h"
#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"
#include "stm32.h"

/* RM0433: 8.7 */
#define RCC_CR 0x58024400u
#define RCC_CR_PLL1ON (1u << 24)
#define RCC_CR_PLL1RDY (1u << 25)
#define RCC_CFGR 0x58024410u
#define RCC_CFGR_SW(n) ((n) << 0)
#define RCC_CFGR_SWS(n) ((n) << 3)
#define RCC_D1CFGR 0x58024418u
#define RCC_D1CFGR_HPRE(n) ((n) << 0)
#define RCC_D1CFGR_D1PPRE(n) ((n) << 4)
#define RCC_D2CFGR 0x5802441Cu
#define RCC_D2CFGR_D2PPRE1(n) ((n) << 4)
#define RCC_D2CFGR_D2PPRE2(n) ((n) << 8)
#define RCC_D3CFGR 0x58024420u
#define RCC_D3CFGR_D3PPRE(n) ((n) << 4)
#define RCC_PLLCKSELR 0x58024428u
#define RCC_PLLCKSELR_PLLSRC(n) ((n) << 0)
#define RCC_PLLCKSELR_DIVM1(n) ((n) << 4)
#define RCC_PLLCFGR 0x5802442Cu
#define RCC_PLLCFGR_PLL1FRACEN (1u << 0)
#define RCC_PLLCFGR_PLL1VCOSEL (1u << 1)
#define RCC_PLLCFGR_PLL1RGE(n) ((n) << 2)
#define RCC_PLLCFGR_DIVP1EN (1u << 16)
#define RCC_PLL1DIVR 0x58024430u
#define RCC_PLL1DIVR_DIVN1(n) ((n) << 0)
#define RCC_PLL1DIVR_DIVP1(n) ((n) << 9)
#define RCC_AHB2ENR 0x580244DCu
#define RCC_AHB2ENR_SRAM1EN (1u << 29)
#define RCC_AHB2ENR_SRAM2EN (1u << 30)
#define RCC_AHB2ENR_SRAM3EN (1u << 31)
#define RCC_AHB3ENR 0x580244D4u
#define RCC_AHB3ENR_FMCEN (1u << 12)
#define RCC_AHB4ENR 0x580244E0u
#define RCC_AHB4ENR_GPIOAEN (1u << 0)
#define RCC_APB1LENR 0x580244E8u
#define RCC_APB1LENR_USART3EN (1u << 18)
#define RCC_APB2ENR 0x580244F0u
#define RCC_APB2ENR_USART1EN (1u << 4)
#define RCC_APB4ENR 0x580244F4u
#define RCC_APB4ENR_SYSCFGEN (1u << 1)

/* RM0433: 6.8 */
#define PWR_CSR1 0x58024804u
#define PWR_CSR1_ACTVOSRDY (1u << 13)
#define PWR_CR3 0x5802480Cu
#define PWR_CR3_BYPASS (1u << 0)
#define PWR_CR3_LDOEN (1u << 1)
#define PWR_CR3_SCUEN (1u << 2)
#define PWR_D3CR 0x58024818u
#define PWR_D3CR_VOSRDY (1u << 13)
#define PWR_D3CR_VOS(n) ((n) << 14)

/* RM0433: 12.3.13 */
#define SYSCFG_PWRCR 0x5800042Cu
#define SYSCFG_PWRCR_ODEN(n) ((n) << 0)

/* RM0433: 4.9.1 */
#define FLASH_ACR 0x52002000u
#define FLASH_ACR_LATENCY(n) ((n) << 0)
#define FLASH_ACR_WRHIGHFREQ(n) ((n) << 4)

/* RM0433: 60.5.8 */
#define DBGMCU_IDC 0x5C001000u
#define DBGMCU_IDC_REV_ID(n) ((n) << 16)

/* RM0433: Flexible memory controller, FMC_BCR1 */
#define FMC 0x52004000u
#define FMC_BCR1 0x52004000u
#define FMC_BCR1_FMCEN (1u << 31)

#define GPIOA 0x58020000u
#define USART1 0x40011000u
#define USART3 0x40004800u

#if MCUD_UART_BASE != USART1 && MCUD_UART_BASE != USART3
#error "this HAL drives USART1 and USART3: see base of [uart] in the board file"
#endif

/* DS12110, alternate functions: USART1 has number 4 on PB14 and PB15, and 7 on its other pins. */
#define PB14 30u
#define PB15 31u
#define USART1_FUNCTION_ON_PB14 4u

#define HSI_HZ 64000000u
#define PLL 3u
#define HALF_OF_AHB 8u
#define HALF_OF_APB 4u
#define REVISION_Y 0x1003u

static uint32_t core_hz = HSI_HZ;
static uint32_t ahb_hz = HSI_HZ;
static uint32_t apb_hz = HSI_HZ; /* APB1 and APB2 */

/* Raises the core's voltage to scale 1, or to scale 0, which 480 MHz need, if `most`; returns whether it is stable.
 * The scale cannot change before CR3 is written. */
static int32_t raise_voltage(int32_t most)
{
    reg_change(PWR_CR3, PWR_CR3_BYPASS | PWR_CR3_LDOEN | PWR_CR3_SCUEN, PWR_CR3_LDOEN);
    if (!reg_wait(PWR_CSR1, PWR_CSR1_ACTVOSRDY, PWR_CSR1_ACTVOSRDY, READY_ATTEMPTS)) {
        return 0;
    }
    reg_change(PWR_D3CR, PWR_D3CR_VOS(3u), PWR_D3CR_VOS(3u));
    if (!reg_wait(PWR_D3CR, PWR_D3CR_VOSRDY, PWR_D3CR_VOSRDY, READY_ATTEMPTS)) {
        return 0;
    }
    if (most) {
        clock_enable(RCC_APB4ENR, RCC_APB4ENR_SYSCFGEN);
        reg_change(SYSCFG_PWRCR, SYSCFG_PWRCR_ODEN(1u), SYSCFG_PWRCR_ODEN(1u));
    }
    return reg_wait(PWR_D3CR, PWR_D3CR_VOSRDY, PWR_D3CR_VOSRDY, READY_ATTEMPTS);
}

/* Locks the PLL at 64 MHz / 4 * `multiplier`, of which the core has half. */
static int32_t lock_pll(uint32_t multiplier)
{
    reg_change(RCC_PLLCKSELR, RCC_PLLCKSELR_PLLSRC(3u) | RCC_PLLCKSELR_DIVM1(63u), RCC_PLLCKSELR_DIVM1(4u));
    reg_change(RCC_PLLCFGR,
               RCC_PLLCFGR_PLL1FRACEN | RCC_PLLCFGR_PLL1VCOSEL | RCC_PLLCFGR_PLL1RGE(3u) | RCC_PLLCFGR_DIVP1EN,
               RCC_PLLCFGR_PLL1RGE(3u) | RCC_PLLCFGR_DIVP1EN);
    reg_change(RCC_PLL1DIVR, RCC_PLL1DIVR_DIVN1(511u) | RCC_PLL1DIVR_DIVP1(127u),
               RCC_PLL1DIVR_DIVN1(multiplier - 1u) | RCC_PLL1DIVR_DIVP1(1u));
    reg_set(RCC_CR, RCC_CR_PLL1ON);
    return reg_wait(RCC_CR, RCC_CR_PLL1RDY, RCC_CR_PLL1RDY, READY_ATTEMPTS);
}

/* Sets AXI and AHB buses to half of the core's clock, APB buses to a quarter. */
static void divide_buses(void)
{
    reg_change(RCC_D1CFGR, RCC_D1CFGR_HPRE(15u) | RCC_D1CFGR_D1PPRE(7u),
               RCC_D1CFGR_HPRE(HALF_OF_AHB) | RCC_D1CFGR_D1PPRE(HALF_OF_APB));
    reg_change(RCC_D2CFGR, RCC_D2CFGR_D2PPRE1(7u) | RCC_D2CFGR_D2PPRE2(7u),
               RCC_D2CFGR_D2PPRE1(HALF_OF_APB) | RCC_D2CFGR_D2PPRE2(HALF_OF_APB));
    reg_change(RCC_D3CFGR, RCC_D3CFGR_D3PPRE(7u), RCC_D3CFGR_D3PPRE(HALF_OF_APB));
}

/* Stays on the oscillator when the regulator or the PLL fails. */
static void start_pll(void)
{
    const int32_t newer = reg_read(DBGMCU_IDC) >> 16 != REVISION_Y;
    const uint32_t multiplier = newer ? 60u : 50u;
    if (!raise_voltage(newer) || !lock_pll(multiplier)) {
        return;
    }
    reg_change(FLASH_ACR, FLASH_ACR_LATENCY(15u) | FLASH_ACR_WRHIGHFREQ(3u),
               FLASH_ACR_LATENCY(4u) | FLASH_ACR_WRHIGHFREQ(2u));
    if (!reg_wait(FLASH_ACR, FLASH_ACR_LATENCY(15u), FLASH_ACR_LATENCY(4u), READY_ATTEMPTS)) {
        return;
    }
    divide_buses();
    reg_change(RCC_CFGR, RCC_CFGR_SW(7u), RCC_CFGR_SW(PLL));
    if (!reg_wait(RCC_CFGR, RCC_CFGR_SWS(7u), RCC_CFGR_SWS(PLL), READY_ATTEMPTS)) {
        reg_change(RCC_CFGR, RCC_CFGR_SW(7u), 0u);
        ahb_hz = HSI_HZ / 2u;
        apb_hz = HSI_HZ / 4u;
        core_hz = HSI_HZ;
        return;
    }
    core_hz = HSI_HZ / 8u * multiplier;
    ahb_hz = core_hz / 2u;
    apb_hz = core_hz / 4u;
}

static void start_usart(void)
{
#if MCUD_UART_BASE == USART1
    clock_enable(RCC_APB2ENR, RCC_APB2ENR_USART1EN);
#else
    clock_enable(RCC_APB1LENR, RCC_APB1LENR_USART3EN);
#endif
    static const uint32_t pins[] = {MCUD_UART_TX_PIN, MCUD_UART_RX_PIN};
    for (uint32_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        const int32_t fourth = MCUD_UART_BASE == USART1 && (pins[i] == PB14 || pins[i] == PB15);
        const pin_use use = {fourth ? USART1_FUNCTION_ON_PB14 : USART_FUNCTION, MEDIUM_SPEED};
        peripheral_pin(RCC_AHB4ENR, RCC_AHB4ENR_GPIOAEN, GPIOA, pins[i], use);
    }
    uart_init(MCUD_UART_BASE, apb_hz, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

/* Starts the SDRAM of a board that has it; the FMC has the clock of the AHB buses. */
static void start_sdram(void)
{
#ifdef MCUD_SDRAM_ORIGIN
    clock_enable(RCC_AHB3ENR, RCC_AHB3ENR_FMCEN);
    fmc_sdram_pins(RCC_AHB4ENR, RCC_AHB4ENR_GPIOAEN, GPIOA);
    fmc_sdram_configure(FMC, ahb_hz);
    reg_set(FMC_BCR1, FMC_BCR1_FMCEN);
    fmc_sdram_power_up(FMC, ahb_hz);
    external_memory_try(MCUD_SDRAM_ORIGIN, MCUD_SDRAM_LOG2_BYTES);
#endif
}

void hal_init(void)
{
    start_pll();
    external_memory_off();
    caches_on();
    clock_enable(RCC_AHB2ENR, RCC_AHB2ENR_SRAM1EN | RCC_AHB2ENR_SRAM2EN | RCC_AHB2ENR_SRAM3EN);
    timer_init();
    start_sdram();
    start_usart();
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
