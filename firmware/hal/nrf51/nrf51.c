/* Clock and UART of the nRF51 on the micro:bit; the receiver has a FIFO of six bytes. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

#define TASKS_HFCLKSTART 0x40000000u
#define EVENTS_HFCLKSTARTED 0x40000100u
#define GPIO_OUTSET 0x50000508u
#define GPIO_DIRSET 0x50000518u
#define GPIO_PIN_CNF(pin) (0x50000700u + 4u * (pin))

#define UART_STARTRX (MCUD_UART_BASE + 0x000u)
#define UART_STARTTX (MCUD_UART_BASE + 0x008u)
#define UART_RXDRDY (MCUD_UART_BASE + 0x108u)
#define UART_TXDRDY (MCUD_UART_BASE + 0x11Cu)
#define UART_INTENSET (MCUD_UART_BASE + 0x304u)
#define UART_ENABLE (MCUD_UART_BASE + 0x500u)
#define UART_PSELRTS (MCUD_UART_BASE + 0x508u)
#define UART_PSELTXD (MCUD_UART_BASE + 0x50Cu)
#define UART_PSELCTS (MCUD_UART_BASE + 0x510u)
#define UART_PSELRXD (MCUD_UART_BASE + 0x514u)
#define UART_RXD (MCUD_UART_BASE + 0x518u)
#define UART_TXD (MCUD_UART_BASE + 0x51Cu)
#define UART_BAUDRATE (MCUD_UART_BASE + 0x524u)

#define TX_PIN 24u
#define RX_PIN 25u
#define NO_PIN 0xFFFFFFFFu
#define RXDRDY_INTERRUPT (1u << 2)

#define READY_ATTEMPTS 100000u /* some 40 ms; a crystal starts within one, an emulator has none */

void hal_init(void)
{
    reg_write(EVENTS_HFCLKSTARTED, 0);
    reg_write(TASKS_HFCLKSTART, 1u);
    (void)reg_wait(EVENTS_HFCLKSTARTED, 1u, 1u, READY_ATTEMPTS); /* else the RC oscillator serves */
    timer_init();
    uart_init(MCUD_CLOCK_HZ);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}

void uart_init(uint32_t clock_hz)
{
    reg_write(GPIO_OUTSET, 1u << TX_PIN); /* idle level before the UART takes the pin */
    reg_write(GPIO_DIRSET, 1u << TX_PIN);
    reg_write(GPIO_PIN_CNF(RX_PIN), 0); /* input; after reset its buffer is off */
    reg_write(UART_PSELTXD, TX_PIN);
    reg_write(UART_PSELRXD, RX_PIN);
    reg_write(UART_PSELRTS, NO_PIN);
    reg_write(UART_PSELCTS, NO_PIN);
    /* Rate in units of clock / 2^32, of which the UART uses the upper 20 bits. */
    const uint64_t rate = (((uint64_t)MCUD_UART_BAUD << 32) + clock_hz / 2u) / clock_hz;
    reg_write(UART_BAUDRATE, (uint32_t)(rate + 0x800u) & 0xFFFFF000u);
    reg_write(UART_ENABLE, 4u);
    reg_write(UART_RXDRDY, 0);
    reg_write(UART_INTENSET, RXDRDY_INTERRUPT);
    reg_write(UART_STARTTX, 1u);
    reg_write(UART_STARTRX, 1u);
    core_uart_irq(1);
}

int32_t uart_receive_ready(void)
{
    return reg_read(UART_RXDRDY) != 0u;
}

uint8_t uart_receive(void)
{
    reg_write(UART_RXDRDY, 0); /* before the read, which raises it again while the FIFO holds more */
    return (uint8_t)reg_read(UART_RXD);
}

void uart_send(uint8_t byte)
{
    reg_write(UART_TXDRDY, 0);
    reg_write(UART_TXD, byte);
    while (reg_read(UART_TXDRDY) == 0u) {
    }
}
