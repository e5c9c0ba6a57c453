/* Clock, pins and debug port of the nRF52840; the core has 64 MHz from the start. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

/* nRF52840 Product Specification: CLOCK, NVMC, UICR, GPIO and UART, registers */
#define CLOCK_TASKS_HFCLKSTART 0x40000000u
#define CLOCK_EVENTS_HFCLKSTARTED 0x40000100u
#define NVMC_READY 0x4001E400u
#define NVMC_READY_READY (1u << 0)
#define NVMC_CONFIG 0x4001E504u
#define NVMC_CONFIG_WEN(n) ((n) << 0)
#define NVMC_ICACHECNF 0x4001E540u
#define NVMC_ICACHECNF_CACHEEN (1u << 0)
#define UICR_APPROTECT 0x10001208u
#define P0 0x50000000u
#define P0_OUTSET 0x508u
#define P0_DIRSET 0x518u
#define P0_PIN_CNF0 0x700u
#define P0_PIN_CNF0_PULL(n) ((n) << 2)
#define UART0_PSEL_RTS 0x40002508u
#define UART0_PSEL_TXD 0x4000250Cu
#define UART0_PSEL_CTS 0x40002510u
#define UART0_PSEL_RXD 0x40002514u

/* Nordic's nrfx: mdk/nrf52840.h, mdk/nrf52_erratas.h (configuration 249) */
#define APPROTECT_DISABLE 0x40000558u
#define FICR_CHIP 0x10000130u
#define FICR_REVISION 0x10000134u

/* Arm DDI 0403E: B3.2.6 */
#define SCB_AIRCR 0xE000ED0Cu
#define SYSTEM_RESET 0x05FA0004u

#define NRF52840 8u
#define REVISION_3 5u
#define ERASED 0xFFFFFFFFu
#define HARDWARE_OPEN 0x5Au
#define READ_ONLY 0u
#define WRITE 1u

#define PORT_BYTES 0x300u
#define PORT_PINS 32u
#define PULL_UP 3u
#define PSEL_MASK (1u << 31 | 0x3Fu) /* not connected; port and pin */
#define UART_CLOCK_HZ 16000000u
#define READY_ATTEMPTS 100000u /* some 10 ms; the crystal starts within one */

static void flash_mode(uint32_t mode)
{
    reg_write(NVMC_CONFIG, NVMC_CONFIG_WEN(mode));
    (void)reg_wait(NVMC_READY, NVMC_READY_READY, NVMC_READY_READY, READY_ATTEMPTS);
}

/* From revision 3 on, each reset locks the debug port unless both UICR and the program open it: else a board could be
 * written only once. As in Nordic's start-up, the program follows UICR; it sets an erased UICR to open, which takes
 * effect at the next reset. A board that its owner has locked stays locked. Chips before revision 3 are locked unless
 * UICR is erased: there the program writes nothing. */
static void open_debug_port(void)
{
    if (reg_read(FICR_CHIP) != NRF52840 || reg_read(FICR_REVISION) < REVISION_3) {
        return;
    }
    if (reg_read(UICR_APPROTECT) == ERASED) {
        flash_mode(WRITE);
        reg_write(UICR_APPROTECT, HARDWARE_OPEN);
        flash_mode(READ_ONLY);
        if (reg_read(UICR_APPROTECT) == HARDWARE_OPEN) {
            reg_write(SCB_AIRCR, SYSTEM_RESET);
            for (;;) {
            }
        }
    }
    reg_write(APPROTECT_DISABLE, reg_read(UICR_APPROTECT));
}

static uintptr_t port_of(uint32_t pin)
{
    return P0 + PORT_BYTES * (pin / PORT_PINS);
}

void hal_init(void)
{
    const uint32_t tx = MCUD_UART_TX_PIN;
    const uint32_t rx = MCUD_UART_RX_PIN;
    open_debug_port();
    reg_write(CLOCK_EVENTS_HFCLKSTARTED, 0u);
    reg_write(CLOCK_TASKS_HFCLKSTART, 1u);
    (void)reg_wait(CLOCK_EVENTS_HFCLKSTARTED, 1u, 1u, READY_ATTEMPTS); /* else the RC oscillator serves */
    reg_write(NVMC_ICACHECNF, NVMC_ICACHECNF_CACHEEN);
    reg_write(port_of(tx) + P0_OUTSET, 1u << tx % PORT_PINS); /* idle level before the UART takes the pin */
    reg_write(port_of(tx) + P0_DIRSET, 1u << tx % PORT_PINS);
    reg_write(port_of(rx) + P0_PIN_CNF0 + 4u * (rx % PORT_PINS), P0_PIN_CNF0_PULL(PULL_UP)); /* input, its buffer on */
    reg_change(UART0_PSEL_TXD, PSEL_MASK, tx); /* the pin number contains the port */
    reg_change(UART0_PSEL_RXD, PSEL_MASK, rx);
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
