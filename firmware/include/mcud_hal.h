/* The interface of a board to the measurer. One implementation per family in firmware/hal. */
#ifndef MCUD_HAL_H
#define MCUD_HAL_H

#include <stdint.h>

/* Clocks, UART with interrupt receive, timer. Called once, first. */
void hal_init(void);

/* Core clock after hal_init, in Hz. */
uint32_t hal_clock_hz(void);

/* Returns when the last byte is in the transmitter. The HAL of the host may buffer bytes until the zero that ends their
 * frame. */
void hal_uart_write(const uint8_t *bytes, uint32_t count);

/* The next received byte, or -1 when none waits. While the receive ring is full, bytes wait on an emulated line and
 * overrun a real one. */
int32_t hal_uart_read(void);

/* Sleeps until a byte may have arrived; may return early. */
void hal_wait(void);

/* A free-running counter that wraps at 2^32, and its rate in Hz. */
uint32_t hal_ticks(void);
uint32_t hal_ticks_hz(void);

/* The stack's lowest usable byte and the byte after its highest. */
uint8_t *hal_stack_limit(void);
uint8_t *hal_stack_top(void);

/* Ends an emulated program with this exit code; on hardware, resets. Does not return. */
void hal_exit(int32_t code);

#endif
