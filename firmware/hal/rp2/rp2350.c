/* The RP2350 with its Arm cores: 150 MHz. */
#include "rp2.h"

/* RP2350 Datasheet: 2.2, 7.5 */
#define CLOCKS 0x40010000u
#define CLOCKS_CLK_USB_CTRL 0x60u
#define RESETS 0x40020000u
#define RESETS_RESET_IO_BANK0 (1u << 6)
#define RESETS_RESET_PADS_BANK0 (1u << 9)
#define RESETS_RESET_PLL_SYS (1u << 14)
#define RESETS_RESET_PLL_USB (1u << 15)
#define RESETS_RESET_UART0 (1u << 26)
#define RESETS_RESET_USBCTRL (1u << 28)
#define IO_BANK0 0x40028000u
#define PADS_BANK0 0x40038000u
#define XOSC 0x40048000u
#define PLL_SYS 0x40050000u
#define PLL_USB 0x40058000u

/* RP2350 Datasheet: 5.9.5.1 */
#define BLOCK_STARTS 0xFFFFDED3u
#define IMAGE_TYPE 0x10210142u /* of one word: program, secure, Arm, RP2350 */
#define LAST_ITEM 0x000001FFu  /* one word before it */
#define NO_OTHER_BLOCK 0u
#define BLOCK_ENDS 0xAB123579u

/* The boot ROM looks for this block in the first 4 KiB of flash. Then it reads flash by quad reads at a third of the
 * core's clock, and starts from the vector table at the origin. */
__attribute__((section(".boot_block"), used)) static const uint32_t image_definition[] = {
    BLOCK_STARTS, IMAGE_TYPE, LAST_ITEM, NO_OTHER_BLOCK, BLOCK_ENDS,
};

const rp2_facts rp2_chip = {
    .resets = RESETS,
    .clocks = CLOCKS,
    .xosc = XOSC,
    .io = IO_BANK0,
    .pads = PADS_BANK0,
    .core_pll = {PLL_SYS, RESETS_RESET_PLL_SYS, 125u, 5u, 2u},
    .usb_pll = {PLL_USB, RESETS_RESET_PLL_USB, 100u, 5u, 5u},
    .usb_clock = CLOCKS + CLOCKS_CLK_USB_CTRL,
    .pins_reset = RESETS_RESET_IO_BANK0 | RESETS_RESET_PADS_BANK0,
    .uart_reset = RESETS_RESET_UART0,
    .usb_reset = RESETS_RESET_USBCTRL,
};

/* RP2350 Datasheet: 5.4, the functions of the boot ROM */
#define ROM_FIND 0x14u /* the upper halfword */
#define ARM_SECURE 0x4u
#define TO_BOOT_LOADER 0x2u
#define NO_RETURN 0x100u
#define DELAY_MS 10u

typedef int32_t reboot(uint32_t flags, uint32_t delay_ms, uint32_t boot_flags, uint32_t activity_pin);
typedef reboot *find_function(uint32_t code, uint32_t mask);

void rp2_start_boot_loader(void)
{
    find_function *const find = (find_function *)(uintptr_t)(rp2_rom_word(ROM_FIND) >> 16);
    find('R' | 'B' << 8, ARM_SECURE)(TO_BOOT_LOADER | NO_RETURN, DELAY_MS, 0u, 0u);
}
