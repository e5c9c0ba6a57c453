/* Clock and pins of the nRF52840 on its development kit; the core has 64 MHz from the start. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

/* nRF52840 Product Specification: CLOCK, NVMC, GPIO and UART, registers */
#define CLOCK_TASKS_HFCLKSTART 0x40000000u
#define CLOCK_EVENTS_HFCLKSTARTED 0x40000100u
#define NVMC_ICACHECNF 0x4001E540u
#define NVMC_ICACHECNF_CACHEEN (1u << 0)
#define P0_OUTSET 0x50000508u
#define P0_DIRSET 0x50000518u
#define P0_PIN_CNF8 0x50000720u
#define P0_PIN_CNF8_PULL(n) ((n) << 2)
#define UART0_PSEL_RTS 0x40002508u
#define UART0_PSEL_TXD 0x4000250Cu
#define UART0_PSEL_CTS 0x40002510u
#define UART0_PSEL_RXD 0x40002514u

#define TX_PIN 6u
#define RX_PIN 8u
#define PSEL_MASK (1u << 31 | 0x3Fu) /* not connected; pin and port */
#define UART_CLOCK_HZ 16000000u
#define READY_ATTEMPTS 100000u /* some 10 ms; the crystal starts within one */

void hal_init(void)
{
    reg_write(CLOCK_EVENTS_HFCLKSTARTED, 0u);
    reg_write(CLOCK_TASKS_HFCLKSTART, 1u);
    (void)reg_wait(CLOCK_EVENTS_HFCLKSTARTED, 1u, 1u, READY_ATTEMPTS); /* else the RC oscillator serves */
    reg_write(NVMC_ICACHECNF, NVMC_ICACHECNF_CACHEEN);
    reg_write(P0_OUTSET, 1u << TX_PIN); /* idle level before the UART takes the pin */
    reg_write(P0_DIRSET, 1u << TX_PIN);
    reg_write(P0_PIN_CNF8, P0_PIN_CNF8_PULL(3u)); /* RX: input with its buffer on, pulled up */
    reg_change(UART0_PSEL_TXD, PSEL_MASK, TX_PIN);
    reg_change(UART0_PSEL_RXD, PSEL_MASK, RX_PIN);
    reg_set(UART0_PSEL_RTS, PSEL_MASK);
    reg_set(UART0_PSEL_CTS, PSEL_MASK);
    timer_init();
    uart_init(MCUD_UART_BASE, UART_CLOCK_HZ, MCUD_UART_BAUD);
    core_irq(MCUD_UART_IRQ, 1);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}
