/* Serial ports to the boards before and behind this one. A HAL has them where its board file lists ports; a driver
 * for another kind of line, such as SPI, provides the same. */
#ifndef MCUD_PORTS_H
#define MCUD_PORTS_H

#include <stdint.h>

enum { PORT_BEFORE, PORT_BEHIND, PORTS };

/* Once, after hal_init(). */
void hal_port_init(void);

/* The next received byte, or -1 when none waits. */
int32_t hal_port_read(uint32_t port);

/* Gives the transmitter as many bytes as it takes without waiting; how many. Where it takes fewer, port_work() runs
 * when it takes more. */
uint32_t hal_port_write(uint32_t port, const uint8_t *bytes, uint32_t count);

/* Has port_work() run soon. */
void hal_port_wake(void);

/* What the user of the ports provides: called when bytes have come or the transmitter takes more, never nested. It
 * interrupts the program, and every interrupt of a device interrupts it. */
void port_work(void);

#endif
