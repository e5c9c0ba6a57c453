/* Clocks, pins and caches of the i.MX RT1062 on a Teensy 4.1: 600 MHz from the crystal of 24 MHz. */
#include <stdint.h>

#include "cortexm_cache.h"
#include "flexspi2_psram.h"
#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

/* IMXRT1060RM: Clock Controller Module */
#define CCM_CACRR 0x400FC010u
#define CCM_CACRR_ARM_PODF(n) ((n) << 0)
#define CCM_CBCDR 0x400FC014u
#define CCM_CBCDR_IPG_PODF(n) ((n) << 8)
#define CCM_CBCDR_AHB_PODF(n) ((n) << 10)
#define CCM_CBCDR_PERIPH_CLK_SEL (1u << 25)
#define CCM_CBCDR_PERIPH_CLK2_PODF(n) ((n) << 27)
#define CCM_CBCMR 0x400FC018u
#define CCM_CBCMR_PERIPH_CLK2_SEL(n) ((n) << 12)
#define CCM_CBCMR_PRE_PERIPH_CLK_SEL(n) ((n) << 18)
#define CCM_CSCDR1 0x400FC024u
#define CCM_CSCDR1_UART_CLK_PODF(n) ((n) << 0)
#define CCM_CSCDR1_UART_CLK_SEL (1u << 6)
#define CCM_CDHIPR 0x400FC048u
#define CCM_CDHIPR_AHB_PODF_BUSY (1u << 1)
#define CCM_CDHIPR_PERIPH2_CLK_SEL_BUSY (1u << 3)
#define CCM_CDHIPR_PERIPH_CLK_SEL_BUSY (1u << 5)
#define CCM_CDHIPR_ARM_PODF_BUSY (1u << 16)
#define CCM_CCGR3 0x400FC074u
#define CCM_CCGR3_CG3(n) ((n) << 6)
#define CCM_CCGR6 0x400FC080u
#define CCM_CCGR6_CG3(n) ((n) << 6)
#define CCM_ANALOG_PLL_ARM 0x400D8000u
#define CCM_ANALOG_PLL_ARM_DIV_SELECT(n) ((n) << 0)
#define CCM_ANALOG_PLL_ARM_POWERDOWN (1u << 12)
#define CCM_ANALOG_PLL_ARM_ENABLE (1u << 13)
#define CCM_ANALOG_PLL_ARM_LOCK (1u << 31)

/* IMXRT1060RM: DCDC Converter */
#define DCDC_REG0 0x40080000u
#define DCDC_REG0_STS_DC_OK (1u << 31)
#define DCDC_REG3 0x4008000Cu
#define DCDC_REG3_TRG(n) ((n) << 0)

/* IMXRT1060RM: IOMUX Controller */
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_02 0x401F80C4u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_02_MUX_MODE(n) ((n) << 0)
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_03 0x401F80C8u
#define IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_03_MUX_MODE(n) ((n) << 0)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03 0x401F82B8u
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_PKE (1u << 12)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_PUE (1u << 13)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_PUS(n) ((n) << 14)
#define IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_HYS (1u << 16)
#define IOMUXC_LPUART6_RX_SELECT_INPUT 0x401F8550u
#define IOMUXC_LPUART6_RX_SELECT_INPUT_DAISY(n) ((n) << 0)

#define CRYSTAL_HZ 24000000u
#define PLL_HZ 600000000u
#define READY_ATTEMPTS 100000u
#define FROM_CRYSTAL 1u
#define FROM_PLL 3u
#define CLOCK_ALWAYS 3u
#define MILLIVOLTS_1275 19u
#define UART 2u
#define PULL_UP_22_KOHM 3u
#define FLASH_ORIGIN 0x60000000u
#define FLASH_8_MIB 23u

static uint32_t core_hz = CRYSTAL_HZ;

/* Waits until a change of the clock tree has taken effect. */
static void settle(uint32_t busy)
{
    while ((reg_read(CCM_CDHIPR) & busy) != 0u) {
    }
}

/* Runs the core by the crystal, so that its PLL may be changed; the PLL of the flash runs on. */
static void use_crystal(void)
{
    reg_change(CCM_CBCDR, CCM_CBCDR_PERIPH_CLK2_PODF(7u), CCM_CBCDR_PERIPH_CLK2_PODF(0u));
    reg_change(CCM_CBCMR, CCM_CBCMR_PERIPH_CLK2_SEL(3u), CCM_CBCMR_PERIPH_CLK2_SEL(FROM_CRYSTAL));
    settle(CCM_CDHIPR_PERIPH2_CLK_SEL_BUSY);
    reg_set(CCM_CBCDR, CCM_CBCDR_PERIPH_CLK_SEL);
    settle(CCM_CDHIPR_PERIPH_CLK_SEL_BUSY);
}

/* 24 MHz * 100 / 2 / 2 = 600 MHz, peripherals at a quarter. Stays on the crystal when the voltage or the PLL fails. */
static void start_pll(void)
{
    use_crystal();
    reg_set(CCM_CCGR6, CCM_CCGR6_CG3(CLOCK_ALWAYS)); /* DCDC */
    reg_change(DCDC_REG3, DCDC_REG3_TRG(31u), DCDC_REG3_TRG(MILLIVOLTS_1275)); /* above 528 MHz */
    if (!reg_wait(DCDC_REG0, DCDC_REG0_STS_DC_OK, DCDC_REG0_STS_DC_OK, READY_ATTEMPTS)) {
        return;
    }
    reg_write(CCM_ANALOG_PLL_ARM, CCM_ANALOG_PLL_ARM_POWERDOWN);
    reg_write(CCM_ANALOG_PLL_ARM, CCM_ANALOG_PLL_ARM_ENABLE | CCM_ANALOG_PLL_ARM_DIV_SELECT(100u));
    if (!reg_wait(CCM_ANALOG_PLL_ARM, CCM_ANALOG_PLL_ARM_LOCK, CCM_ANALOG_PLL_ARM_LOCK, READY_ATTEMPTS)) {
        return;
    }
    reg_write(CCM_CACRR, CCM_CACRR_ARM_PODF(1u));
    settle(CCM_CDHIPR_ARM_PODF_BUSY);
    reg_change(CCM_CBCDR, CCM_CBCDR_AHB_PODF(7u) | CCM_CBCDR_IPG_PODF(3u),
               CCM_CBCDR_AHB_PODF(0u) | CCM_CBCDR_IPG_PODF(3u));
    settle(CCM_CDHIPR_AHB_PODF_BUSY);
    reg_change(CCM_CBCMR, CCM_CBCMR_PRE_PERIPH_CLK_SEL(3u), CCM_CBCMR_PRE_PERIPH_CLK_SEL(FROM_PLL));
    reg_change(CCM_CBCDR, CCM_CBCDR_PERIPH_CLK_SEL, 0u);
    settle(CCM_CDHIPR_PERIPH_CLK_SEL_BUSY);
    core_hz = PLL_HZ;
}

/* LPUART6 on the pins 1 (TX) and 0 (RX, pulled up: quiet if nothing is connected), from the crystal. */
static void start_uart(void)
{
    reg_change(CCM_CSCDR1, CCM_CSCDR1_UART_CLK_PODF(63u), CCM_CSCDR1_UART_CLK_SEL);
    reg_set(CCM_CCGR3, CCM_CCGR3_CG3(CLOCK_ALWAYS)); /* LPUART6 */
    reg_write(IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03,
              IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_PKE | IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_PUE
                  | IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_PUS(PULL_UP_22_KOHM) | IOMUXC_SW_PAD_CTL_PAD_GPIO_AD_B0_03_HYS);
    reg_write(IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_02, IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_02_MUX_MODE(UART));
    reg_write(IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_03, IOMUXC_SW_MUX_CTL_PAD_GPIO_AD_B0_03_MUX_MODE(UART));
    reg_write(IOMUXC_LPUART6_RX_SELECT_INPUT, IOMUXC_LPUART6_RX_SELECT_INPUT_DAISY(1u)); /* GPIO_AD_B0_03 */
    uart_init(MCUD_UART_BASE, CRYSTAL_HZ, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

void hal_init(void)
{
    start_pll();
    external_memory_only(FLASH_ORIGIN, FLASH_8_MIB);
    caches_on();
    timer_init();
#ifdef MCUD_PSRAM_ORIGIN
    if (flexspi2_psram_start()) {
        external_memory_try(MCUD_PSRAM_ORIGIN, MCUD_PSRAM_LOG2_BYTES);
    }
#endif
    start_uart();
}

uint32_t hal_clock_hz(void)
{
    return core_hz;
}
