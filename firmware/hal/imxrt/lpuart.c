/* The LPUART of i.MX RT; used without its FIFOs. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"

/* IMXRT1060RM: Low Power UART */
#define LPUART_BAUD 0x10u
#define LPUART_BAUD_SBR(n) ((n) << 0)
#define LPUART_BAUD_OSR(n) ((n) << 24)
#define LPUART_STAT 0x14u
#define LPUART_STAT_OR (1u << 19)
#define LPUART_STAT_RDRF (1u << 21)
#define LPUART_STAT_TDRE (1u << 23)
#define LPUART_CTRL 0x18u
#define LPUART_CTRL_RE (1u << 18)
#define LPUART_CTRL_TE (1u << 19)
#define LPUART_CTRL_RIE (1u << 21)
#define LPUART_DATA 0x1Cu

#define OVERSAMPLING 16u

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    const uint32_t rate = OVERSAMPLING * baud;
    reg_write(base + LPUART_BAUD, LPUART_BAUD_OSR(OVERSAMPLING - 1u) | LPUART_BAUD_SBR((clock_hz + rate / 2u) / rate));
    reg_write(base + LPUART_CTRL, LPUART_CTRL_TE | LPUART_CTRL_RE | LPUART_CTRL_RIE);
}

int32_t uart_receive_ready(uintptr_t base)
{
    const uint32_t status = reg_read(base + LPUART_STAT);
    if ((status & LPUART_STAT_OR) != 0u) { /* the UART receives nothing until the overrun is cleared */
        reg_write(base + LPUART_STAT, LPUART_STAT_OR);
    }
    return (status & LPUART_STAT_RDRF) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return (uint8_t)reg_read(base + LPUART_DATA);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while ((reg_read(base + LPUART_STAT) & LPUART_STAT_TDRE) == 0u) {
    }
    reg_write(base + LPUART_DATA, byte);
}
