/* 16550 UART with byte-wide registers. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"

#define UART_DATA (MCUD_UART_BASE + 0u)
#define UART_INTERRUPTS (MCUD_UART_BASE + 1u)
#define UART_FIFO (MCUD_UART_BASE + 2u)
#define UART_LINE (MCUD_UART_BASE + 3u)
#define UART_STATUS (MCUD_UART_BASE + 5u)

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
    uart_init(MCUD_CLOCK_HZ);
}

void uart_init(uint32_t clock_hz)
{
    (void)clock_hz; /* the machine's line has no rate */
    write(UART_LINE, 3u);        /* eight bits, no parity */
    write(UART_FIFO, 7u);        /* FIFOs on and empty, interrupt at the first byte */
    write(UART_INTERRUPTS, 1u);  /* received data */
    core_uart_irq(1);
}

int32_t uart_receive_ready(void)
{
    return (read(UART_STATUS) & 1u) != 0u;
}

uint8_t uart_receive(void)
{
    return read(UART_DATA);
}

void uart_send(uint8_t byte)
{
    while ((read(UART_STATUS) & 0x20u) == 0u) {
    }
    write(UART_DATA, byte);
}
