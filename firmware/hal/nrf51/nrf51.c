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

#define PIN_CNF_PULL_UP (3u << 2)

#define UART_STARTRX 0x000u
#define UART_STARTTX 0x008u
#define UART_RXDRDY 0x108u
#define UART_TXDRDY 0x11Cu
#define UART_INTENSET 0x304u
#define UART_ENABLE 0x500u
#define UART_PSELRTS 0x508u
#define UART_PSELTXD 0x50Cu
#define UART_PSELCTS 0x510u
#define UART_PSELRXD 0x514u
#define UART_RXD 0x518u
#define UART_TXD 0x51Cu
#define UART_BAUDRATE 0x524u

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
    uart_init(MCUD_UART_BASE, MCUD_CLOCK_HZ, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    reg_write(GPIO_OUTSET, 1u << TX_PIN); /* idle level before the UART takes the pin */
    reg_write(GPIO_DIRSET, 1u << TX_PIN);
    reg_write(GPIO_PIN_CNF(RX_PIN), PIN_CNF_PULL_UP); /* an input; the pull keeps it quiet if nothing is connected */
    reg_write(base + UART_PSELTXD, TX_PIN);
    reg_write(base + UART_PSELRXD, RX_PIN);
    reg_write(base + UART_PSELRTS, NO_PIN);
    reg_write(base + UART_PSELCTS, NO_PIN);
    /* Rate in units of clock / 2^32, of which the UART uses the upper 20 bits. */
    const uint64_t rate = (((uint64_t)baud << 32) + clock_hz / 2u) / clock_hz;
    reg_write(base + UART_BAUDRATE, (uint32_t)(rate + 0x800u) & 0xFFFFF000u);
    reg_write(base + UART_ENABLE, 4u);
    reg_write(base + UART_RXDRDY, 0);
    reg_write(base + UART_INTENSET, RXDRDY_INTERRUPT);
    reg_write(base + UART_STARTTX, 1u);
    reg_write(base + UART_STARTRX, 1u);
}

int32_t uart_receive_ready(uintptr_t base)
{
    return reg_read(base + UART_RXDRDY) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    reg_write(base + UART_RXDRDY, 0); /* before the read, which raises it again while the FIFO holds more */
    return (uint8_t)reg_read(base + UART_RXD);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    reg_write(base + UART_TXDRDY, 0);
    reg_write(base + UART_TXD, byte);
    while (reg_read(base + UART_TXDRDY) == 0u) {
    }
}
