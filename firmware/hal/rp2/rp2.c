/* Clocks and pins of RP2040 and RP2350: the PLL from the crystal of 12 MHz that their boot loader needs, too. */
#include "rp2.h"

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define FREQUENCY_1_TO_15_MHZ 0xAA0u
#define ENABLED 0xFABu
#define STARTUP_64_MS 3008u /* in 256 clocks of the crystal; boards are known whose crystal takes tens of ms */
#define FROM_CRYSTAL 2u
#define UART 2u

/* Nothing else has a rate that is known: without crystal and PLL there is no line to the host. */
static void await(uintptr_t address, uint32_t mask, uint32_t value)
{
    while ((reg_read(address) & mask) != value) {
    }
}

/* Back to the state after power-on, whatever ran before: SYSRESETREQ resets no peripherals. */
static void reset(uint32_t bits)
{
    reg_set(rp2_chip.resets + RESETS_RESET, bits);
    reg_change(rp2_chip.resets + RESETS_RESET, bits, 0u);
    await(rp2_chip.resets + RESETS_RESET_DONE, bits, bits);
}

/* The ring oscillator drives all, and the PLL may be changed. */
static void leave_pll(void)
{
    reg_change(rp2_chip.clocks + CLOCKS_CLK_SYS_CTRL, CLOCKS_CLK_SYS_CTRL_SRC, 0u);
    await(rp2_chip.clocks + CLOCKS_CLK_SYS_SELECTED, 3u, 1u << 0);
    reg_change(rp2_chip.clocks + CLOCKS_CLK_REF_CTRL, CLOCKS_CLK_REF_CTRL_SRC(3u), 0u);
    await(rp2_chip.clocks + CLOCKS_CLK_REF_SELECTED, 7u, 1u << 0);
}

static void start_crystal(void)
{
    reg_write(rp2_chip.xosc + XOSC_STARTUP, XOSC_STARTUP_DELAY(STARTUP_64_MS));
    reg_write(rp2_chip.xosc + XOSC_CTRL, XOSC_CTRL_FREQ_RANGE(FREQUENCY_1_TO_15_MHZ) | XOSC_CTRL_ENABLE(ENABLED));
    await(rp2_chip.xosc + XOSC_STATUS, XOSC_STATUS_STABLE, XOSC_STATUS_STABLE);
    reg_change(rp2_chip.clocks + CLOCKS_CLK_REF_CTRL, CLOCKS_CLK_REF_CTRL_SRC(3u), CLOCKS_CLK_REF_CTRL_SRC(FROM_CRYSTAL));
    await(rp2_chip.clocks + CLOCKS_CLK_REF_SELECTED, 7u, 1u << FROM_CRYSTAL);
}

static void start_pll(void)
{
    reset(rp2_chip.pll_reset);
    reg_write(rp2_chip.pll + PLL_CS, PLL_CS_REFDIV(1u));
    reg_write(rp2_chip.pll + PLL_FBDIV_INT, rp2_chip.multiplier);
    reg_change(rp2_chip.pll + PLL_PWR, PLL_PWR_PD | PLL_PWR_VCOPD, 0u);
    await(rp2_chip.pll + PLL_CS, PLL_CS_LOCK, PLL_CS_LOCK);
    reg_write(rp2_chip.pll + PLL_PRIM,
              PLL_PRIM_POSTDIV1(rp2_chip.first_divider) | PLL_PRIM_POSTDIV2(rp2_chip.second_divider));
    reg_change(rp2_chip.pll + PLL_PWR, PLL_PWR_POSTDIVPD, 0u);
}

/* The core from the PLL, the UART from the core's clock. */
static void use_pll(void)
{
    reg_change(rp2_chip.clocks + CLOCKS_CLK_SYS_CTRL, CLOCKS_CLK_SYS_CTRL_AUXSRC(7u), CLOCKS_CLK_SYS_CTRL_AUXSRC(0u));
    reg_set(rp2_chip.clocks + CLOCKS_CLK_SYS_CTRL, CLOCKS_CLK_SYS_CTRL_SRC);
    await(rp2_chip.clocks + CLOCKS_CLK_SYS_SELECTED, 3u, 1u << 1);
    reg_write(rp2_chip.clocks + CLOCKS_CLK_PERI_CTRL, CLOCKS_CLK_PERI_CTRL_ENABLE);
}

/* GPIO0 sends, GPIO1 receives and is pulled up: quiet if nothing is connected. */
static void use_pins(void)
{
    const uint32_t pad = PADS_BANK0_GPIO0_SCHMITT | PADS_BANK0_GPIO0_DRIVE(1u) | PADS_BANK0_GPIO0_IE;
    reset(rp2_chip.pins_reset);
    reg_write(rp2_chip.io + IO_BANK0_GPIO0_CTRL, IO_BANK0_GPIO0_CTRL_FUNCSEL(UART));
    reg_write(rp2_chip.io + IO_BANK0_GPIO1_CTRL, IO_BANK0_GPIO1_CTRL_FUNCSEL(UART));
    reg_write(rp2_chip.pads + PADS_BANK0_GPIO0, pad); /* on RP2350 this ends the isolation of the pad, too */
    reg_write(rp2_chip.pads + PADS_BANK0_GPIO1, pad | PADS_BANK0_GPIO0_PUE);
}

void hal_init(void)
{
    leave_pll();
    start_crystal();
    start_pll();
    use_pll();
    timer_init();
    reset(rp2_chip.uart_reset);
    uart_init(MCUD_UART_BASE, MCUD_CLOCK_HZ, MCUD_UART_BAUD);
    use_pins();
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}
