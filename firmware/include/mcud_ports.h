/* Serial ports to the previous and the next board. A HAL has them if its board file lists ports; a driver
 * for another kind of line, such as SPI, provides the same. */
#ifndef MCUD_PORTS_H
#define MCUD_PORTS_H

#include <stdbool.h>
#include <stdint.h>

enum { PORT_BEFORE, PORT_BEHIND, PORTS };

/* Once, after hal_init(). */
void hal_port_init(void);

/* Points *bytes to the first received byte that waits, and returns the number of bytes that follow it in memory,
 * perhaps fewer than wait. They stay until hal_port_take() removes the first `count` of them. */
uint32_t hal_port_waiting(uint32_t port, const uint8_t **bytes);
void hal_port_take(uint32_t port, uint32_t count);

/* Begins to send bytes and returns. The caller keeps them unchanged until port_work() runs, after the last one. */
void hal_port_send(uint32_t port, const uint8_t *bytes, uint32_t count);

/* Whether bytes of the last hal_port_send() are left. */
bool hal_port_sending(uint32_t port);

/* Makes port_work() run soon. */
void hal_port_wake(void);

/* Runs port_work() on ports without interrupts; does nothing on others. Call it repeatedly. */
void hal_port_poll(void);

/* Ticks (hal_ticks) that the ports' interrupts have taken, without port_work(); wraps at 2^32. */
uint32_t hal_port_ticks(void);

/* Provided by the user of the ports: called after a frame was received or sent, never nested. It runs at a lower
 * interrupt priority than devices, and interrupts the program. */
void port_work(void);

/* Provided by the user of the ports: whether there is work, so that hal_wait() does not sleep. It is called with
 * interrupts disabled. */
bool port_busy(void);

#endif
