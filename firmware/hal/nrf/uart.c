/* The UART of nRF52 without DMA; the receiver has a FIFO of six bytes. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"

/* nRF52840 Product Specification: UART, registers */
#define UART_TASKS_STARTRX 0x000u
#define UART_TASKS_STARTTX 0x008u
#define UART_EVENTS_RXDRDY 0x108u
#define UART_EVENTS_TXDRDY 0x11Cu
#define UART_INTENSET 0x304u
#define UART_INTENSET_RXDRDY (1u << 2)
#define UART_ENABLE 0x500u
#define UART_ENABLE_ENABLE(n) ((n) << 0)
#define UART_RXD 0x518u
#define UART_TXD 0x51Cu
#define UART_BAUDRATE 0x524u

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    /* Rate in units of clock / 2^32, of which the UART uses the upper 20 bits. */
    const uint64_t rate = (((uint64_t)baud << 32) + clock_hz / 2u) / clock_hz;
    reg_write(base + UART_BAUDRATE, (uint32_t)(rate + 0x800u) & ~0xFFFu);
    reg_write(base + UART_ENABLE, UART_ENABLE_ENABLE(4u));
    reg_write(base + UART_EVENTS_RXDRDY, 0u);
    reg_write(base + UART_INTENSET, UART_INTENSET_RXDRDY);
    reg_write(base + UART_TASKS_STARTTX, 1u);
    reg_write(base + UART_TASKS_STARTRX, 1u);
}

int32_t uart_receive_ready(uintptr_t base)
{
    return reg_read(base + UART_EVENTS_RXDRDY) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    reg_write(base + UART_EVENTS_RXDRDY, 0u); /* before the read, which raises it again while the FIFO holds more */
    return (uint8_t)reg_read(base + UART_RXD);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    reg_write(base + UART_EVENTS_TXDRDY, 0u);
    reg_write(base + UART_TXD, byte);
    while (reg_read(base + UART_EVENTS_TXDRDY) == 0u) {
    }
}
