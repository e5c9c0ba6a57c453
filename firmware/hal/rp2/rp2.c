/* Clocks of RP2040 and RP2350: the PLL runs from the crystal of 12 MHz, which their boot loader needs, too. */
#include "rp2.h"

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define FREQUENCY_1_TO_15_MHZ 0xAA0u
#define ENABLED 0xFABu
#define STARTUP_64_MS 3008u /* in 256 clocks of the crystal; on some boards it takes tens of ms */
#define FROM_CRYSTAL 2u

/* Waits without limit: only the crystal and the PLL have known rates, and without them there is no line to the host. */
static void await(uintptr_t address, uint32_t mask, uint32_t value)
{
    while ((reg_read(address) & mask) != value) {
    }
}

void rp2_release(uint32_t bits)
{
    reg_change(rp2_chip.resets + RESETS_RESET, bits, 0u);
    await(rp2_chip.resets + RESETS_RESET_DONE, bits, bits);
}

void rp2_reset(uint32_t bits)
{
    reg_set(rp2_chip.resets + RESETS_RESET, bits);
    rp2_release(bits);
}

/* Runs all by the ring oscillator, so that the PLL may be changed. */
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

void rp2_start_pll(const rp2_pll *pll)
{
    rp2_reset(pll->reset);
    reg_write(pll->base + PLL_CS, PLL_CS_REFDIV(1u));
    reg_write(pll->base + PLL_FBDIV_INT, pll->multiplier);
    reg_change(pll->base + PLL_PWR, PLL_PWR_PD | PLL_PWR_VCOPD, 0u);
    await(pll->base + PLL_CS, PLL_CS_LOCK, PLL_CS_LOCK);
    reg_write(pll->base + PLL_PRIM, PLL_PRIM_POSTDIV1(pll->first_divider) | PLL_PRIM_POSTDIV2(pll->second_divider));
    reg_change(pll->base + PLL_PWR, PLL_PWR_POSTDIVPD, 0u);
}

/* Runs the core by the PLL, and the UART by the core's clock. */
static void use_pll(void)
{
    reg_change(rp2_chip.clocks + CLOCKS_CLK_SYS_CTRL, CLOCKS_CLK_SYS_CTRL_AUXSRC(7u), CLOCKS_CLK_SYS_CTRL_AUXSRC(0u));
    reg_set(rp2_chip.clocks + CLOCKS_CLK_SYS_CTRL, CLOCKS_CLK_SYS_CTRL_SRC);
    await(rp2_chip.clocks + CLOCKS_CLK_SYS_SELECTED, 3u, 1u << 1);
    reg_write(rp2_chip.clocks + CLOCKS_CLK_PERI_CTRL, CLOCKS_CLK_PERI_CTRL_ENABLE);
}

uint32_t rp2_rom_word(uintptr_t address)
{
    return reg_read(address);
}

void hal_init(void)
{
    leave_pll();
    start_crystal();
    rp2_start_pll(&rp2_chip.core_pll);
    use_pll();
    timer_init();
    rp2_start_line();
#ifdef MCUD_PSRAM_ORIGIN
    rp2_start_psram(); /* after the line, which may reset the pins */
#endif
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}
