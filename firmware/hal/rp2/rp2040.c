/* The RP2040: 133 MHz. */
#include "rp2.h"

/* RP2040 Datasheet: 2.2, 2.14 */
#define CLOCKS 0x40008000u
#define CLOCKS_CLK_USB_CTRL 0x54u
#define RESETS 0x4000C000u
#define RESETS_RESET_IO_BANK0 (1u << 5)
#define RESETS_RESET_PADS_BANK0 (1u << 8)
#define RESETS_RESET_PLL_SYS (1u << 12)
#define RESETS_RESET_PLL_USB (1u << 13)
#define RESETS_RESET_UART0 (1u << 22)
#define RESETS_RESET_USBCTRL (1u << 24)
#define IO_BANK0 0x40014000u
#define PADS_BANK0 0x4001C000u
#define XOSC 0x40024000u
#define PLL_SYS 0x40028000u
#define PLL_USB 0x4002C000u

const rp2_facts rp2_chip = {
    .resets = RESETS,
    .clocks = CLOCKS,
    .xosc = XOSC,
    .io = IO_BANK0,
    .pads = PADS_BANK0,
    .core_pll = {PLL_SYS, RESETS_RESET_PLL_SYS, 133u, 6u, 2u},
    .usb_pll = {PLL_USB, RESETS_RESET_PLL_USB, 100u, 5u, 5u},
    .usb_clock = CLOCKS + CLOCKS_CLK_USB_CTRL,
    .pins_reset = RESETS_RESET_IO_BANK0 | RESETS_RESET_PADS_BANK0,
    .uart_reset = RESETS_RESET_UART0,
    .usb_reset = RESETS_RESET_USBCTRL,
};

/* RP2040 Datasheet: 2.8.3, the functions of the boot ROM */
#define ROM_TABLES 0x14u /* two halfwords: addresses of the tables of functions and of data */
#define ROM_FIND 0x18u

typedef void start_usb_boot(uint32_t activity_pins, uint32_t disabled_interfaces);
typedef start_usb_boot *find_function(uintptr_t table, uint32_t code);

void rp2_start_boot_loader(void)
{
    const uintptr_t table = rp2_rom_word(ROM_TABLES) & 0xFFFFu;
    find_function *const find = (find_function *)(uintptr_t)(rp2_rom_word(ROM_FIND) & 0xFFFFu);
    find(table, 'U' | 'B' << 8)(0u, 0u);
}
