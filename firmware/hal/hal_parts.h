/* Interfaces between the parts of one family's HAL; the measurer sees mcud_hal.h only. */
#ifndef MCUD_HAL_PARTS_H
#define MCUD_HAL_PARTS_H

#include <stdint.h>

/* --- memory.c ---------------------------------------------------------------------------------- */

/* Placed by the linker script. */
extern uint8_t mcud_stack_limit[];
extern uint8_t mcud_stack_top[];

/* Fills .data and clears .bss; comes before all code with static variables. */
void memory_init(void);

/* --- core: cortexm/ or riscv/ ------------------------------------------------------------------ */

enum { EXIT_FAULT = 86 }; /* exit code of a fault, unlike those of hal_exit() */

void core_interrupts_off(void);
void core_interrupts_on(void);

/* Sleeps until an interrupt is pending, also one that is masked. Called with interrupts off. */
void core_sleep(void);

/* Lets an interrupt reach the core, or keeps it pending. */
void core_irq(uint32_t irq, int32_t on);

/* Lets port_work() run as soon as no interrupt does: above the program, never nested. Where a chip has ports. */
void core_defer(void);

/* --- cortexm/startup.c: the registers of a fault, whose frame is on the stack from `limit` to `top` ----- */

void cortexm_report_fault(const uint32_t *frame, const uint8_t *limit, const uint8_t *top);

/* --- a second core: cortexm/unit.c, and the functions of the chip --------------------------------------- */

enum { UNIT_VECTORS_ALIGNMENT = 512 };

/* On the first core: unit_release() starts the second core from a vector table, and each unit_wake() ends its sleep. */
void unit_release(const void *vectors);
void unit_wake(void);

/* On the second core, whose interrupts are off: unit_init() comes once at its start; unit_sleep() sleeps until
 * unit_wake(). A wake since the last sleep ends the next sleep at once. */
void unit_init(void);
void unit_sleep(void);

/* --- report.c: for fault handlers under emulation ---------------------------------------------- */

void report_text(const char *text);

/* `label` and the value as eight hexadecimal digits. */
void report_value(const char *label, uint32_t value);

/* --- UART driver: registers only, of the UART at `base` --------------------------------------- */

/* Sets the baud rate from the clock that feeds the UART; receiver, transmitter and receive interrupt on. */
void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud);

/* 1 when a received byte waits in the device. */
int32_t uart_receive_ready(uintptr_t base);

/* Returns the received byte, and clears its signal. */
uint8_t uart_receive(uintptr_t base);

/* Waits for the transmitter to take one byte. */
void uart_send(uintptr_t base, uint8_t byte);

/* Where a chip has ports. uart_send_ready() is 1 when the transmitter takes a byte at once. uart_send_some() gives the
 * transmitter all bytes that it takes at once, and returns their number. uart_send_interrupt() turns the interrupt of a
 * ready transmitter on or off. */
int32_t uart_send_ready(uintptr_t base);
uint32_t uart_send_some(uintptr_t base, const uint8_t *bytes, uint32_t count);
void uart_send_interrupt(uintptr_t base, int32_t on);

/* --- receive rings: uart_ring.c --------------------------------------------------------------- */

/* The handlers of the interrupts of the host's UART and of ports. */
void uart_interrupt(void);
void port0_interrupt(void);
void port1_interrupt(void);

/* Where a chip has ports: starts their clocks and pins. Returns the clock of their UARTs in Hz. */
uint32_t port_init(void);

/* --- driver of the board's links, if a program has transfers -------------------------------- */

/* The handler of all their interrupts. */
void dma_interrupt(void);

/* --- external memories: cortexm/external_memory.c --------------------------------------------- */

/* Waits at least `us` microseconds. The timer must run. */
void pause_us(uint32_t us);

/* 1 if every address line and every bit of a word works. `bytes` is a power of two. It overwrites some words, and needs
 * them uncached. */
int32_t memory_answers(uintptr_t origin, uint32_t bytes);

/* --- timer: one of the files named by the board ----------------------------------------------- */

void timer_init(void);

/* The handler of the core's own timer interrupt, if a timer uses it. */
void core_timer_interrupt(void);

#endif
