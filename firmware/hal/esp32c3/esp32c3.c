/* Start, watchdogs, clocks, pins and reset of an ESP32-C3 without ESP-IDF. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

/* ESP32-C3 Technical Reference Manual: Low-power Management, Watchdog Timers */
#define RTC_CNTL 0x60008000u
#define RTC_CNTL_OPTIONS0 0x0u
#define RTC_CNTL_OPTIONS0_BB_I2C_FORCE_PD (1u << 6)
#define RTC_CNTL_OPTIONS0_BBPLL_I2C_FORCE_PD (1u << 8)
#define RTC_CNTL_OPTIONS0_BBPLL_FORCE_PD (1u << 10)
#define RTC_CNTL_OPTIONS0_SW_SYS_RST (1u << 31)
#define RTC_CNTL_WDTCONFIG0 0x90u
#define RTC_CNTL_WDTWPROTECT 0xA8u
#define RTC_CNTL_SWD_CONF 0xACu
#define RTC_CNTL_SWD_CONF_SWD_AUTO_FEED_EN (1u << 31)
#define RTC_CNTL_SWD_WPROTECT 0xB0u
#define TIMG0 0x6001F000u
#define TIMG0_WDTCONFIG0 0x48u
#define TIMG0_WDTCONFIG0_WDT_CONF_UPDATE_EN (1u << 22)
#define TIMG0_WDTWPROTECT 0x64u

/* ESP32-C3 Technical Reference Manual: Reset and Clock, System Registers */
#define SYSTEM 0x600C0000u
#define SYSTEM_CPU_PER_CONF 0x8u
#define SYSTEM_CPU_PER_CONF_CPUPERIOD_SEL(n) ((n) << 0)
#define SYSTEM_CPU_PER_CONF_PLL_FREQ_SEL (1u << 2)
#define SYSTEM_SYSCLK_CONF 0x58u
#define SYSTEM_SYSCLK_CONF_PRE_DIV_CNT(n) ((n) << 0)
#define SYSTEM_SYSCLK_CONF_SOC_CLK_SEL(n) ((n) << 10)

/* ESP32-C3 Technical Reference Manual: IO MUX and GPIO Matrix */
#define IO_MUX 0x60009000u
#define IO_MUX_GPIO20 0x54u
#define IO_MUX_GPIO20_FUN_WPU (1u << 8)
#define IO_MUX_GPIO20_FUN_IE (1u << 9)
#define IO_MUX_GPIO20_MCU_SEL(n) ((n) << 12)
#define IO_MUX_GPIO21 0x58u
#define IO_MUX_GPIO21_MCU_SEL(n) ((n) << 12)

/* The master of the bus to analogue blocks. No manual describes it: the address and bits are those of ESP-IDF. */
#define ANALOGUE_MASTER 0x6000E040u
#define PLL_STOP_FORCE_HIGH (1u << 2)
#define PLL_STOP_FORCE_LOW (1u << 3)

#define WATCHDOG_KEY 0x50D83AA1u
#define SUPER_WATCHDOG_KEY 0x8F1D312Au
#define FROM_PLL 1u
#define PLL_160_MHZ 1u
#define CRYSTAL_HZ 40000000u
#define PLL_BLOCK 0x66u
#define PLL_HOST 0u

void direct_boot_start(void);
int main(void);

/* Functions of the boot ROM, called by address: they write a register of an analogue block, or a range of its bits. */
typedef void analogue_write(uint8_t block, uint8_t host, uint8_t reg, uint8_t value);
typedef void analogue_write_bits(uint8_t block, uint8_t host, uint8_t reg, uint8_t high, uint8_t low, uint8_t value);

/* ESP-IDF, esp32c3.rom.ld: rom_i2c_writeReg, rom_i2c_writeReg_Mask */
#define ROM_ANALOGUE_WRITE 0x4000195Cu
#define ROM_ANALOGUE_WRITE_BITS 0x40001960u

/* The ROM arms the watchdogs of RTC and timer group 0 for the time of the boot; the super watchdog feeds itself. */
static void stop_watchdogs(void)
{
    reg_write(RTC_CNTL + RTC_CNTL_WDTWPROTECT, WATCHDOG_KEY);
    reg_write(RTC_CNTL + RTC_CNTL_WDTCONFIG0, 0u);
    reg_write(RTC_CNTL + RTC_CNTL_WDTWPROTECT, 0u);
    reg_write(RTC_CNTL + RTC_CNTL_SWD_WPROTECT, SUPER_WATCHDOG_KEY);
    reg_set(RTC_CNTL + RTC_CNTL_SWD_CONF, RTC_CNTL_SWD_CONF_SWD_AUTO_FEED_EN);
    reg_write(RTC_CNTL + RTC_CNTL_SWD_WPROTECT, 0u);
    reg_write(TIMG0 + TIMG0_WDTWPROTECT, WATCHDOG_KEY);
    reg_write(TIMG0 + TIMG0_WDTCONFIG0, TIMG0_WDTCONFIG0_WDT_CONF_UPDATE_EN);
    reg_write(TIMG0 + TIMG0_WDTWPROTECT, 0u);
}

/* 480 MHz from the crystal of 40 MHz. The values and their order are those that ESP-IDF writes: the registers of the
 * PLL are documented there only. */
static void start_pll(void)
{
    analogue_write *const write = (analogue_write *)ROM_ANALOGUE_WRITE;
    analogue_write_bits *const write_bits = (analogue_write_bits *)ROM_ANALOGUE_WRITE_BITS;
    reg_change(RTC_CNTL + RTC_CNTL_OPTIONS0,
               RTC_CNTL_OPTIONS0_BB_I2C_FORCE_PD | RTC_CNTL_OPTIONS0_BBPLL_I2C_FORCE_PD | RTC_CNTL_OPTIONS0_BBPLL_FORCE_PD,
               0u);
    reg_set(SYSTEM + SYSTEM_CPU_PER_CONF, SYSTEM_CPU_PER_CONF_PLL_FREQ_SEL);
    reg_change(ANALOGUE_MASTER, PLL_STOP_FORCE_HIGH | PLL_STOP_FORCE_LOW, PLL_STOP_FORCE_LOW);
    write(PLL_BLOCK, PLL_HOST, 4u, 0x6Bu);              /* mode for 480 MHz */
    write(PLL_BLOCK, PLL_HOST, 2u, 0x50u);              /* charge pump 5, reference / 1 */
    write(PLL_BLOCK, PLL_HOST, 3u, 8u);                 /* multiplier */
    write_bits(PLL_BLOCK, PLL_HOST, 5u, 2u, 0u, 0u);    /* DR1 */
    write_bits(PLL_BLOCK, PLL_HOST, 5u, 6u, 4u, 0u);    /* DR3 */
    write(PLL_BLOCK, PLL_HOST, 6u, 0x93u);              /* current 3, references 1 and 2 */
    write_bits(PLL_BLOCK, PLL_HOST, 9u, 1u, 0u, 2u);    /* bias of the oscillator */
    write_bits(PLL_BLOCK, PLL_HOST, 6u, 5u, 4u, 2u);    /* high reference */
    write_bits(PLL_BLOCK, PLL_HOST, 6u, 7u, 6u, 1u);    /* low reference */
}

/* If the ROM has left the core on the PLL, the PLL runs already. */
static void use_pll(void)
{
    const uint32_t source = SYSTEM_SYSCLK_CONF_SOC_CLK_SEL(3u);
    const uint32_t divider = SYSTEM_SYSCLK_CONF_PRE_DIV_CNT(0x3FFu);
    const uint32_t pll = SYSTEM_SYSCLK_CONF_SOC_CLK_SEL(FROM_PLL);
    if ((reg_read(SYSTEM + SYSTEM_SYSCLK_CONF) & source) != pll) {
        start_pll();
    }
    reg_change(SYSTEM + SYSTEM_CPU_PER_CONF, SYSTEM_CPU_PER_CONF_CPUPERIOD_SEL(3u),
               SYSTEM_CPU_PER_CONF_CPUPERIOD_SEL(PLL_160_MHZ));
    reg_change(SYSTEM + SYSTEM_SYSCLK_CONF, divider, 0u);
    reg_change(SYSTEM + SYSTEM_SYSCLK_CONF, source, pll);
}

/* Function 0 of these pins is UART 0. */
static void connect_pins(void)
{
    reg_change(IO_MUX + IO_MUX_GPIO21, IO_MUX_GPIO21_MCU_SEL(7u), 0u);
    reg_change(IO_MUX + IO_MUX_GPIO20, IO_MUX_GPIO20_MCU_SEL(7u), 0u);
    reg_set(IO_MUX + IO_MUX_GPIO20, IO_MUX_GPIO20_FUN_IE | IO_MUX_GPIO20_FUN_WPU);
}

void hal_init(void)
{
    use_pll();
    connect_pins();
    timer_init();
    uart_init(MCUD_UART_BASE, CRYSTAL_HZ, MCUD_UART_BAUD);
}

void hal_exit(int32_t code)
{
    (void)code;
    reg_set(RTC_CNTL + RTC_CNTL_OPTIONS0, RTC_CNTL_OPTIONS0_SW_SYS_RST);
    for (;;) {
    }
}

void direct_boot_start(void)
{
    stop_watchdogs();
    memory_init();
    hal_exit(main());
}
