/* The RP2040: 133 MHz. */
#include "rp2.h"

/* RP2040 Datasheet: 2.2, 2.14 */
#define CLOCKS 0x40008000u
#define RESETS 0x4000C000u
#define RESETS_RESET_IO_BANK0 (1u << 5)
#define RESETS_RESET_PADS_BANK0 (1u << 8)
#define RESETS_RESET_PLL_SYS (1u << 12)
#define RESETS_RESET_UART0 (1u << 22)
#define IO_BANK0 0x40014000u
#define PADS_BANK0 0x4001C000u
#define XOSC 0x40024000u
#define PLL_SYS 0x40028000u

const rp2_facts rp2_chip = {
    .resets = RESETS,
    .clocks = CLOCKS,
    .xosc = XOSC,
    .pll = PLL_SYS,
    .io = IO_BANK0,
    .pads = PADS_BANK0,
    .pll_reset = RESETS_RESET_PLL_SYS,
    .pins_reset = RESETS_RESET_IO_BANK0 | RESETS_RESET_PADS_BANK0,
    .uart_reset = RESETS_RESET_UART0,
    .multiplier = 133u,
    .first_divider = 6u,
    .second_divider = 2u,
};
