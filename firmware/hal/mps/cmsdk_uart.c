/* The UART of Arm's MPS2 and MPS3 boards (CMSDK APB UART), one byte deep. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define UART_DATA (MCUD_UART_BASE + 0x00u)
#define UART_STATE (MCUD_UART_BASE + 0x04u)
#define UART_CTRL (MCUD_UART_BASE + 0x08u)
#define UART_INTCLEAR (MCUD_UART_BASE + 0x0Cu)
#define UART_BAUDDIV (MCUD_UART_BASE + 0x10u)

#define STATE_TX_FULL 1u
#define STATE_RX_FULL 2u
#define CTRL_TX 1u
#define CTRL_RX 2u
#define CTRL_RX_INTERRUPT 8u
#define INT_RX 2u

void hal_init(void)
{
    timer_init();
    uart_init(MCUD_CLOCK_HZ);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}

void uart_init(uint32_t clock_hz)
{
    reg_write(UART_BAUDDIV, clock_hz / MCUD_UART_BAUD);
    reg_write(UART_CTRL, CTRL_TX | CTRL_RX | CTRL_RX_INTERRUPT);
    core_uart_irq(1);
}

int32_t uart_receive_ready(void)
{
    /* Cleared before the state is read: a byte that comes later raises the interrupt again. */
    reg_write(UART_INTCLEAR, INT_RX);
    return (reg_read(UART_STATE) & STATE_RX_FULL) != 0u;
}

uint8_t uart_receive(void)
{
    return (uint8_t)reg_read(UART_DATA);
}

void uart_send(uint8_t byte)
{
    while ((reg_read(UART_STATE) & STATE_TX_FULL) != 0u) {
    }
    reg_write(UART_DATA, byte);
}
