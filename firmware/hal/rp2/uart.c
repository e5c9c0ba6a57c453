/* The UART of RP2040 and RP2350, Arm's PL011, and its pins; used without its FIFOs. */
#include "rp2.h"

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"

/* RP2040 Datasheet: 4.2.8, RP2350 Datasheet: 12.1.8 */
#define UART_UARTDR 0x00u
#define UART_UARTFR 0x18u
#define UART_UARTFR_RXFE (1u << 4)
#define UART_UARTFR_TXFF (1u << 5)
#define UART_UARTIBRD 0x24u
#define UART_UARTFBRD 0x28u
#define UART_UARTLCR_H 0x2Cu
#define UART_UARTLCR_H_WLEN(n) ((n) << 5)
#define UART_UARTCR 0x30u
#define UART_UARTCR_UARTEN (1u << 0)
#define UART_UARTCR_TXE (1u << 8)
#define UART_UARTCR_RXE (1u << 9)
#define UART_UARTIMSC 0x38u
#define UART_UARTIMSC_RXIM (1u << 4)

/* RP2040 Datasheet: 2.19.6, RP2350 Datasheet: 9.11 */
#define IO_BANK0_GPIO0_CTRL 0x04u
#define IO_BANK0_GPIO0_CTRL_FUNCSEL(n) ((n) << 0)
#define IO_BANK0_GPIO1_CTRL 0x0Cu
#define IO_BANK0_GPIO1_CTRL_FUNCSEL(n) ((n) << 0)
#define PADS_BANK0_GPIO0 0x4u
#define PADS_BANK0_GPIO0_SCHMITT (1u << 1)
#define PADS_BANK0_GPIO0_PUE (1u << 3)
#define PADS_BANK0_GPIO0_DRIVE(n) ((n) << 4)
#define PADS_BANK0_GPIO0_IE (1u << 6)
#define PADS_BANK0_GPIO1 0x8u

#define EIGHT_BITS 3u
#define UART 2u

/* GPIO0 sends, GPIO1 receives and is pulled up: quiet if nothing is connected. */
static void use_pins(void)
{
    const uint32_t pad = PADS_BANK0_GPIO0_SCHMITT | PADS_BANK0_GPIO0_DRIVE(1u) | PADS_BANK0_GPIO0_IE;
    rp2_reset(rp2_chip.pins_reset);
    reg_write(rp2_chip.io + IO_BANK0_GPIO0_CTRL, IO_BANK0_GPIO0_CTRL_FUNCSEL(UART));
    reg_write(rp2_chip.io + IO_BANK0_GPIO1_CTRL, IO_BANK0_GPIO1_CTRL_FUNCSEL(UART));
    reg_write(rp2_chip.pads + PADS_BANK0_GPIO0, pad); /* on RP2350 this ends the isolation of the pad, too */
    reg_write(rp2_chip.pads + PADS_BANK0_GPIO1, pad | PADS_BANK0_GPIO0_PUE);
}

void rp2_start_line(void)
{
    rp2_reset(rp2_chip.uart_reset);
    uart_init(MCUD_UART_BASE, MCUD_CLOCK_HZ, MCUD_UART_BAUD);
    use_pins();
}

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    const uint32_t divisor = (4u * clock_hz + baud / 2u) / baud; /* of 16 clocks, in 1/64 */
    reg_write(base + UART_UARTIBRD, divisor / 64u);
    reg_write(base + UART_UARTFBRD, divisor % 64u);
    reg_write(base + UART_UARTLCR_H, UART_UARTLCR_H_WLEN(EIGHT_BITS)); /* this write makes the divisor take effect */
    reg_write(base + UART_UARTIMSC, UART_UARTIMSC_RXIM);
    reg_write(base + UART_UARTCR, UART_UARTCR_UARTEN | UART_UARTCR_TXE | UART_UARTCR_RXE);
}

int32_t uart_receive_ready(uintptr_t base)
{
    return (reg_read(base + UART_UARTFR) & UART_UARTFR_RXFE) == 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return (uint8_t)reg_read(base + UART_UARTDR);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while ((reg_read(base + UART_UARTFR) & UART_UARTFR_TXFF) != 0u) {
    }
    reg_write(base + UART_UARTDR, byte);
}
