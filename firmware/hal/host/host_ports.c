/* Ports of a process: file descriptors that it inherits, by the environment: MCUD_PORT0 before, MCUD_PORT1 after. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "mcud_ports.h"

enum { RING_BYTES = 4096 };

static struct {
    int descriptor; /* -1 if there is no neighbour, or it has gone */
    uint32_t received;
    uint32_t taken;
    const uint8_t *next; /* to be sent */
    uint32_t left;
    uint8_t bytes[RING_BYTES];
} ports[PORTS];

void hal_port_init(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a neighbour that has gone is like a line that is cut */
    static const char *const names[PORTS] = {"MCUD_PORT0", "MCUD_PORT1"};
    for (uint32_t i = 0; i < PORTS; i++) {
        const char *const number = getenv(names[i]);
        ports[i].descriptor = number != NULL ? (int)strtol(number, NULL, 10) : -1;
        if (ports[i].descriptor >= 0) {
            (void)fcntl(ports[i].descriptor, F_SETFL, O_NONBLOCK);
        }
    }
}

uint32_t hal_port_waiting(uint32_t port, const uint8_t **bytes)
{
    if (ports[port].taken == ports[port].received && ports[port].descriptor >= 0) {
        const ssize_t count = read(ports[port].descriptor, ports[port].bytes, RING_BYTES);
        ports[port].received = count > 0 ? (uint32_t)count : 0;
        ports[port].taken = 0;
    }
    *bytes = ports[port].bytes + ports[port].taken;
    return ports[port].received - ports[port].taken;
}

void hal_port_take(uint32_t port, uint32_t count)
{
    ports[port].taken += count;
}

void hal_port_send(uint32_t port, const uint8_t *bytes, uint32_t count)
{
    ports[port].next = bytes;
    ports[port].left = count;
    (void)hal_port_sending(port);
}

bool hal_port_sending(uint32_t port)
{
    if (ports[port].descriptor < 0) {
        ports[port].left = 0; /* as on a line without a receiver */
    }
    if (ports[port].left > 0) {
        const ssize_t sent = write(ports[port].descriptor, ports[port].next, ports[port].left);
        if (sent > 0) {
            ports[port].next += sent;
            ports[port].left -= (uint32_t)sent;
        } else if (sent < 0 && errno == EPIPE) {
            ports[port].descriptor = -1;
            ports[port].left = 0;
        }
    }
    return ports[port].left > 0;
}

void hal_port_wake(void)
{
    port_work();
}

void hal_port_poll(void)
{
    port_work();
}

uint32_t hal_port_ticks(void)
{
    return 0; /* there are no interrupts */
}
