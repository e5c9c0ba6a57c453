/* Common parts of RP2040 and RP2350: the same blocks at other addresses. rp2.c starts them; each chip has a file of
 * facts. */
#ifndef MCUD_RP2_H
#define MCUD_RP2_H

#include <stdint.h>

/* RP2040 Datasheet: 2.14, RP2350 Datasheet: 7.5 */
#define RESETS_RESET 0x0u
#define RESETS_RESET_DONE 0x8u

/* RP2040 Datasheet: 2.15, RP2350 Datasheet: 8.1 */
#define CLOCKS_CLK_REF_CTRL 0x30u
#define CLOCKS_CLK_REF_CTRL_SRC(n) ((n) << 0)
#define CLOCKS_CLK_REF_SELECTED 0x38u
#define CLOCKS_CLK_SYS_CTRL 0x3Cu
#define CLOCKS_CLK_SYS_CTRL_SRC (1u << 0)
#define CLOCKS_CLK_SYS_CTRL_AUXSRC(n) ((n) << 5)
#define CLOCKS_CLK_SYS_SELECTED 0x44u
#define CLOCKS_CLK_PERI_CTRL 0x48u
#define CLOCKS_CLK_PERI_CTRL_ENABLE (1u << 11)
#define CLOCKS_CLK_USB_CTRL_ENABLE (1u << 11)

/* RP2040 Datasheet: 2.16, RP2350 Datasheet: 8.2 */
#define XOSC_CTRL 0x0u
#define XOSC_CTRL_FREQ_RANGE(n) ((n) << 0)
#define XOSC_CTRL_ENABLE(n) ((n) << 12)
#define XOSC_STATUS 0x4u
#define XOSC_STATUS_STABLE (1u << 31)
#define XOSC_STARTUP 0xCu
#define XOSC_STARTUP_DELAY(n) ((n) << 0)

/* RP2040 Datasheet: 2.18, RP2350 Datasheet: 8.6 */
#define PLL_CS 0x0u
#define PLL_CS_REFDIV(n) ((n) << 0)
#define PLL_CS_LOCK (1u << 31)
#define PLL_PWR 0x4u
#define PLL_PWR_PD (1u << 0)
#define PLL_PWR_POSTDIVPD (1u << 3)
#define PLL_PWR_VCOPD (1u << 5)
#define PLL_FBDIV_INT 0x8u
#define PLL_PRIM 0xCu
#define PLL_PRIM_POSTDIV2(n) ((n) << 12)
#define PLL_PRIM_POSTDIV1(n) ((n) << 16)

/* A PLL, which yields 12 MHz * multiplier / first_divider / second_divider. */
typedef struct {
    uintptr_t base;
    uint32_t reset; /* its bit of the resets */
    uint32_t multiplier;
    uint32_t first_divider;
    uint32_t second_divider;
} rp2_pll;

typedef struct {
    uintptr_t resets;
    uintptr_t clocks;
    uintptr_t xosc;
    uintptr_t io;
    uintptr_t pads;
    rp2_pll core_pll;
    rp2_pll usb_pll;
    uintptr_t usb_clock; /* its control register */
    uint32_t pins_reset; /* bits of the resets */
    uint32_t uart_reset;
    uint32_t usb_reset;
} rp2_facts;

extern const rp2_facts rp2_chip;

/* Resets peripherals (bits of RESETS_RESET) and releases them, since SYSRESETREQ resets none. */
void rp2_reset(uint32_t bits);

/* Releases peripherals from reset; those that run are not reset. */
void rp2_release(uint32_t bits);

void rp2_start_pll(const rp2_pll *pll);

/* Starts the line to the host: uart.c or usb.c. */
void rp2_start_line(void);

/* Starts the board's PSRAM, if its file has one: qmi_psram.c. If it does not answer, it stays closed for writes. */
void rp2_start_psram(void);

/* A word of the boot ROM. A function hides the address, which is near 0, since compilers warn of it. */
uint32_t rp2_rom_word(uintptr_t address);

/* Restarts the chip in the boot loader of its ROM, as if BOOTSEL were held. */
void rp2_start_boot_loader(void);

#endif
