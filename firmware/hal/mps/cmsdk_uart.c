/* The UART of Arm's MPS2 and MPS3 boards (CMSDK APB UART), one byte deep. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define UART_DATA 0x00u
#define UART_STATE 0x04u
#define UART_CTRL 0x08u
#define UART_INTCLEAR 0x0Cu
#define UART_BAUDDIV 0x10u

#define STATE_TX_FULL 1u
#define STATE_RX_FULL 2u
#define CTRL_TX 1u
#define CTRL_RX 2u
#define CTRL_TX_INTERRUPT 4u
#define CTRL_RX_INTERRUPT 8u
#define INT_TX 1u
#define INT_RX 2u

void hal_init(void)
{
    timer_init();
    uart_init(MCUD_UART_BASE, MCUD_CLOCK_HZ, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}

uint32_t port_init(void)
{
    return MCUD_CLOCK_HZ;
}

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    reg_write(base + UART_BAUDDIV, clock_hz / baud);
    reg_write(base + UART_CTRL, CTRL_TX | CTRL_RX | CTRL_RX_INTERRUPT);
}

int32_t uart_receive_ready(uintptr_t base)
{
    /* The interrupt is cleared before the state is read: a byte that comes later raises it again. */
    reg_write(base + UART_INTCLEAR, INT_RX);
    return (reg_read(base + UART_STATE) & STATE_RX_FULL) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return (uint8_t)reg_read(base + UART_DATA);
}

int32_t uart_send_ready(uintptr_t base)
{
    return (reg_read(base + UART_STATE) & STATE_TX_FULL) == 0u;
}

void uart_send_interrupt(uintptr_t base, int32_t on)
{
    reg_change(base + UART_CTRL, CTRL_TX_INTERRUPT, on ? CTRL_TX_INTERRUPT : 0u);
    reg_write(base + UART_INTCLEAR, INT_TX); /* this interrupt reports once that the transmitter took a byte */
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while (!uart_send_ready(base)) {
    }
    reg_write(base + UART_DATA, byte);
}

uint32_t uart_send_some(uintptr_t base, const uint8_t *bytes, uint32_t count)
{
    uint32_t sent = 0;
    while (sent < count && uart_send_ready(base)) {
        reg_write(base + UART_DATA, bytes[sent]);
        sent++;
    }
    return sent;
}
