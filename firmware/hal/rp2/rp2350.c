/* The RP2350 with its Arm cores: 150 MHz. */
#include "rp2.h"

/* RP2350 Datasheet: 2.2, 7.5 */
#define CLOCKS 0x40010000u
#define RESETS 0x40020000u
#define RESETS_RESET_IO_BANK0 (1u << 6)
#define RESETS_RESET_PADS_BANK0 (1u << 9)
#define RESETS_RESET_PLL_SYS (1u << 14)
#define RESETS_RESET_UART0 (1u << 26)
#define IO_BANK0 0x40028000u
#define PADS_BANK0 0x40038000u
#define XOSC 0x40048000u
#define PLL_SYS 0x40050000u

/* RP2350 Datasheet: 5.9.5.1 */
#define BLOCK_STARTS 0xFFFFDED3u
#define IMAGE_TYPE 0x10210142u /* of one word: program, secure, Arm, RP2350 */
#define LAST_ITEM 0x000001FFu  /* one word before it */
#define NO_OTHER_BLOCK 0u
#define BLOCK_ENDS 0xAB123579u

/* In the first 4 KiB of flash the boot ROM looks for this. It reads flash by quad reads at a third of the core's clock from
 * then on, and starts the vector table at the origin. */
__attribute__((section(".boot_block"), used)) static const uint32_t image_definition[] = {
    BLOCK_STARTS, IMAGE_TYPE, LAST_ITEM, NO_OTHER_BLOCK, BLOCK_ENDS,
};

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
    .multiplier = 125u,
    .first_divider = 5u,
    .second_divider = 2u,
};
