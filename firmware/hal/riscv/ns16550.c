/* 16550 UART with byte-wide registers. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"

#define UART_DATA 0u
#define UART_INTERRUPTS 1u
#define UART_FIFO 2u
#define UART_LINE 3u
#define UART_STATUS 5u

static uint8_t read(uintptr_t address)
{
    return *(volatile uint8_t *)address;
}

static void write(uintptr_t address, uint8_t value)
{
    *(volatile uint8_t *)address = value;
}

void hal_init(void)
{
    timer_init();
    uart_init(MCUD_UART_BASE, MCUD_CLOCK_HZ, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    (void)clock_hz;
    (void)baud; /* the machine's line has no rate */
    write(base + UART_LINE, 3u);        /* eight bits, no parity */
    write(base + UART_FIFO, 7u);        /* FIFOs on and empty, interrupt at the first byte */
    write(base + UART_INTERRUPTS, 1u);  /* received data */
}

int32_t uart_receive_ready(uintptr_t base)
{
    return (read(base + UART_STATUS) & 1u) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return read(base + UART_DATA);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while ((read(base + UART_STATUS) & 0x20u) == 0u) {
    }
    write(base + UART_DATA, byte);
}
