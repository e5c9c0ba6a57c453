/* Start, watchdogs, clocks, pins and reset of an ESP32-C6 without ESP-IDF; its high-performance core alone. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

/* ESP32-C6 Technical Reference Manual: Watchdog Timers */
#define LP_WDT 0x600B1C00u
#define LP_WDT_WDTCONFIG0 0x0u
#define LP_WDT_WDTWPROTECT 0x18u
#define LP_WDT_SWD_CONF 0x1Cu
#define LP_WDT_SWD_CONF_SWD_AUTO_FEED_EN (1u << 18)
#define LP_WDT_SWD_WPROTECT 0x20u
#define TIMG0 0x60008000u
#define TIMG0_WDTCONFIG0 0x48u
#define TIMG0_WDTCONFIG0_WDT_CONF_UPDATE_EN (1u << 22)
#define TIMG0_WDTWPROTECT 0x64u

/* ESP32-C6 Technical Reference Manual: Reset and Clock, Low-Power Management */
#define PCR 0x60096000u
#define PCR_UART0_CONF 0x0u
#define PCR_UART0_CONF_UART0_CLK_EN (1u << 0)
#define PCR_UART0_SCLK_CONF 0x4u
#define PCR_UART0_SCLK_CONF_UART0_SCLK_SEL(n) ((n) << 20)
#define PCR_UART0_SCLK_CONF_UART0_SCLK_EN (1u << 22)
#define PCR_SYSCLK_CONF 0x110u
#define PCR_SYSCLK_CONF_SOC_CLK_SEL(n) ((n) << 16)
#define PCR_CPU_FREQ_CONF 0x118u
#define PCR_CPU_FREQ_CONF_CPU_HS_DIV_NUM(n) ((n) << 8)
#define PCR_CPU_FREQ_CONF_CPU_HS_120M_FORCE (1u << 16)
#define PMU 0x600B0000u
#define PMU_IMM_HP_CK_POWER 0xCCu
#define PMU_IMM_HP_CK_POWER_TIE_HIGH_GLOBAL_BBPLL_ICG (1u << 25)
#define PMU_IMM_HP_CK_POWER_TIE_HIGH_XPD_BB_I2C (1u << 28)
#define PMU_IMM_HP_CK_POWER_TIE_HIGH_XPD_BBPLL_I2C (1u << 29)
#define PMU_IMM_HP_CK_POWER_TIE_HIGH_XPD_BBPLL (1u << 30)
#define LP_AON 0x600B1000u
#define LP_AON_SYS_CFG 0x34u
#define LP_AON_SYS_CFG_HPSYS_SW_RESET (1u << 31)

/* The master of the bus to analogue blocks: their registers are described in ESP-IDF only. */
#define LP_I2C_ANA_MST 0x600B2400u
#define LP_I2C_ANA_MST_I2C0_CTRL 0x0u
#define LP_I2C_ANA_MST_I2C0_CTRL_LP_I2C_ANA_MAST_I2C0_BUSY (1u << 25)
#define LP_I2C_ANA_MST_I2C0_DATA 0x8u
#define LP_I2C_ANA_MST_I2C0_DATA_LP_I2C_ANA_MAST_I2C0_RDATA(n) ((n) << 0)
#define LP_I2C_ANA_MST_DEVICE_EN 0x14u
#define LP_I2C_ANA_MST_DATE 0x3FCu
#define LP_I2C_ANA_MST_DATE_LP_I2C_ANA_MAST_I2C_MAT_CLK_EN (1u << 28)

/* Without a name in the SVD file; ESP-IDF: modem_lpcon_reg.h, i2c_ana_mst_reg.h */
#define MODEM_CLOCKS 0x600AF018u
#define MODEM_CLOCK_OF_BUS (1u << 2)
#define CALIBRATION 0x600AF818u
#define CALIBRATION_STOP_HIGH (1u << 2)
#define CALIBRATION_STOP_LOW (1u << 3)
#define CALIBRATION_DONE (1u << 24)

/* ESP32-C6 Technical Reference Manual: IO MUX and GPIO Matrix */
#define IO_MUX 0x60090000u
#define IO_MUX_GPIO16 0x44u
#define IO_MUX_GPIO16_MCU_SEL(n) ((n) << 12)
#define IO_MUX_GPIO17 0x48u
#define IO_MUX_GPIO17_FUN_WPU (1u << 8)
#define IO_MUX_GPIO17_FUN_IE (1u << 9)
#define IO_MUX_GPIO17_MCU_SEL(n) ((n) << 12)

#define WATCHDOG_KEY 0x50D83AA1u
#define FROM_PLL 1u
#define FROM_CRYSTAL 3u
#define UART 0u
#define CRYSTAL_HZ 40000000u
#define PLL_BLOCK 0x66u
#define PLL_DEVICE (1u << 5)
#define WRITES (1u << 24)
#define ATTEMPTS 10000u /* some milliseconds */

void direct_boot_start(void);
int main(void);

/* The ROM arms the watchdogs of the low-power system and of timer group 0 for the time of the boot; the super watchdog
 * feeds itself. */
static void stop_watchdogs(void)
{
    reg_write(LP_WDT + LP_WDT_WDTWPROTECT, WATCHDOG_KEY);
    reg_write(LP_WDT + LP_WDT_WDTCONFIG0, 0u);
    reg_write(LP_WDT + LP_WDT_WDTWPROTECT, 0u);
    reg_write(LP_WDT + LP_WDT_SWD_WPROTECT, WATCHDOG_KEY);
    reg_set(LP_WDT + LP_WDT_SWD_CONF, LP_WDT_SWD_CONF_SWD_AUTO_FEED_EN);
    reg_write(LP_WDT + LP_WDT_SWD_WPROTECT, 0u);
    reg_write(TIMG0 + TIMG0_WDTWPROTECT, WATCHDOG_KEY);
    reg_write(TIMG0 + TIMG0_WDTCONFIG0, TIMG0_WDTCONFIG0_WDT_CONF_UPDATE_EN);
    reg_write(TIMG0 + TIMG0_WDTWPROTECT, 0u);
}

static void analogue_request(uint32_t request)
{
    reg_write(LP_I2C_ANA_MST + LP_I2C_ANA_MST_I2C0_CTRL, PLL_BLOCK | request);
    (void)reg_wait(LP_I2C_ANA_MST + LP_I2C_ANA_MST_I2C0_CTRL, LP_I2C_ANA_MST_I2C0_CTRL_LP_I2C_ANA_MAST_I2C0_BUSY, 0u, ATTEMPTS);
}

/* Writes `value` to the bits under `mask` of a register of the PLL. */
static void analogue_change(uint32_t reg, uint32_t mask, uint32_t value)
{
    uint32_t now = 0;
    if (mask != 0xFFu) {
        analogue_request(reg << 8);
        now = reg_read(LP_I2C_ANA_MST + LP_I2C_ANA_MST_I2C0_DATA) & LP_I2C_ANA_MST_I2C0_DATA_LP_I2C_ANA_MAST_I2C0_RDATA(0xFFu);
    }
    analogue_request(WRITES | ((now & ~mask) | value) << 16 | reg << 8);
}

/* 480 MHz from the crystal of 40 MHz. The values and their order are those that ESP-IDF writes. */
static void start_pll(void)
{
    reg_set(PMU + PMU_IMM_HP_CK_POWER, PMU_IMM_HP_CK_POWER_TIE_HIGH_XPD_BB_I2C | PMU_IMM_HP_CK_POWER_TIE_HIGH_XPD_BBPLL |
                                           PMU_IMM_HP_CK_POWER_TIE_HIGH_XPD_BBPLL_I2C);
    reg_set(PMU + PMU_IMM_HP_CK_POWER, PMU_IMM_HP_CK_POWER_TIE_HIGH_GLOBAL_BBPLL_ICG);
    reg_set(MODEM_CLOCKS, MODEM_CLOCK_OF_BUS);
    reg_set(LP_I2C_ANA_MST + LP_I2C_ANA_MST_DATE, LP_I2C_ANA_MST_DATE_LP_I2C_ANA_MAST_I2C_MAT_CLK_EN);
    reg_set(LP_I2C_ANA_MST + LP_I2C_ANA_MST_DEVICE_EN, PLL_DEVICE);
    reg_change(CALIBRATION, CALIBRATION_STOP_HIGH | CALIBRATION_STOP_LOW, CALIBRATION_STOP_LOW);
    analogue_change(2u, 0xFFu, 0x50u); /* charge pump 5, reference / 1 */
    analogue_change(3u, 0xFFu, 8u);    /* multiplier */
    analogue_change(5u, 0x77u, 0u);    /* DR1, DR3 */
    analogue_change(6u, 0xFFu, 0x73u); /* current 3, references 1 and 3 */
    analogue_change(9u, 0x03u, 2u);    /* bias of the oscillator */
    (void)reg_wait(CALIBRATION, CALIBRATION_DONE, CALIBRATION_DONE, ATTEMPTS);
    reg_change(CALIBRATION, CALIBRATION_STOP_HIGH | CALIBRATION_STOP_LOW, CALIBRATION_STOP_HIGH);
}

/* If the ROM has left the core on the PLL, the PLL runs already. A third of its clock is 160 MHz. */
static void use_pll(void)
{
    const uint32_t source = PCR_SYSCLK_CONF_SOC_CLK_SEL(3u);
    const uint32_t pll = PCR_SYSCLK_CONF_SOC_CLK_SEL(FROM_PLL);
    if ((reg_read(PCR + PCR_SYSCLK_CONF) & source) != pll) {
        start_pll();
    }
    reg_change(PCR + PCR_CPU_FREQ_CONF, PCR_CPU_FREQ_CONF_CPU_HS_DIV_NUM(0xFFu) | PCR_CPU_FREQ_CONF_CPU_HS_120M_FORCE, 0u);
    reg_change(PCR + PCR_SYSCLK_CONF, source, pll);
}

/* Function 0 of these pins is UART 0. */
static void connect_uart(void)
{
    reg_set(PCR + PCR_UART0_CONF, PCR_UART0_CONF_UART0_CLK_EN);
    reg_write(PCR + PCR_UART0_SCLK_CONF,
              PCR_UART0_SCLK_CONF_UART0_SCLK_SEL(FROM_CRYSTAL) | PCR_UART0_SCLK_CONF_UART0_SCLK_EN);
    reg_change(IO_MUX + IO_MUX_GPIO16, IO_MUX_GPIO16_MCU_SEL(7u), IO_MUX_GPIO16_MCU_SEL(UART));
    reg_change(IO_MUX + IO_MUX_GPIO17, IO_MUX_GPIO17_MCU_SEL(7u), IO_MUX_GPIO17_MCU_SEL(UART));
    reg_set(IO_MUX + IO_MUX_GPIO17, IO_MUX_GPIO17_FUN_IE | IO_MUX_GPIO17_FUN_WPU);
}

void hal_init(void)
{
    use_pll();
    connect_uart();
    timer_init();
    uart_init(MCUD_UART_BASE, CRYSTAL_HZ, MCUD_UART_BAUD);
}

void hal_exit(int32_t code)
{
    (void)code;
    reg_set(LP_AON + LP_AON_SYS_CFG, LP_AON_SYS_CFG_HPSYS_SW_RESET);
    for (;;) {
    }
}

void direct_boot_start(void)
{
    stop_watchdogs();
    memory_init();
    hal_exit(main());
}
