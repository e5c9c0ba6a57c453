/* Receive rings between the UARTs' interrupts and their readers: UART 0 is the host's, further ones are ports to other
 * boards. A ring has one writer and one reader.
 *
 * A ring has 256 bytes of static RAM: one frame of the protocol, and 8-bit indices wrap around by themselves. When a
 * ring is full its interrupt is masked and the byte stays in the UART: an emulated line then waits (nothing is lost), a
 * real one overruns.
 */
#include <stddef.h>
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "mcud_ports.h"

typedef struct {
    volatile uint8_t bytes[256];
    volatile uint8_t head;    /* next to be written */
    volatile uint8_t tail;    /* next to be read */
    volatile uint8_t stalled; /* the ring was full, so the interrupt is masked */
} receive_ring;

static const uintptr_t bases[MCUD_UARTS] = {MCUD_UART_BASES};
static const uint8_t irqs[MCUD_UARTS] = {MCUD_UART_IRQS};
static receive_ring rings[MCUD_UARTS];

enum { NONE = -1, CALM, URGENT };

/* Moves a byte that a UART holds into its ring. URGENT if the ring's reader should run at once: a frame has ended, or
 * the ring is half full; NONE if there is no byte, or no room. Interrupts are off, or this is the interrupt. */
static inline int32_t move_byte(uint32_t uart)
{
    receive_ring *const ring = &rings[uart];
    if (!uart_receive_ready(bases[uart])) {
        return NONE;
    }
    const uint8_t head = ring->head;
    const uint8_t next = (uint8_t)(head + 1u);
    const uint8_t tail = ring->tail;
    if (next == tail) {
        ring->stalled = 1;
        core_irq(irqs[uart], 0);
        return NONE;
    }
    const uint8_t byte = uart_receive(bases[uart]);
    ring->bytes[head] = byte;
    ring->head = next;
    return byte == 0u || (uint8_t)(next - tail) >= 128u ? URGENT : CALM;
}

static void drain(uint32_t uart)
{
    while (move_byte(uart) != NONE) {
    }
}

#if MCUD_UARTS > 1
typedef struct {
    const uint8_t *next;
    volatile uint32_t left;
} send_queue;

static send_queue queues[MCUD_UARTS];
static volatile uint32_t port_ticks;

/* Gives the transmitter what it takes, and enables its interrupt if bytes are left. Interrupts are off, or this is the
 * interrupt. */
static void feed_transmitter(uint32_t uart)
{
    send_queue *const queue = &queues[uart];
    const uintptr_t base = bases[uart];
    do {
        const uint32_t sent = uart_send_some(base, queue->next, queue->left);
        queue->next += sent;
        queue->left -= sent;
        uart_send_interrupt(base, queue->left > 0u);
    } while (queue->left > 0u && uart_send_ready(base)); /* it became ready before its interrupt was enabled */
}

/* Receives a byte and sends one or more; the UART raises its interrupt again for the next one. Each port inlines a copy
 * with constant addresses, since every byte of a payload comes here. */
static inline void serve_port(uint32_t uart)
{
    const uint32_t first = hal_ticks();
    int32_t urgent = move_byte(uart);
    if (queues[uart].left > 0u) {
        feed_transmitter(uart);
        urgent = queues[uart].left == 0u ? URGENT : urgent;
    }
    if (urgent == URGENT) {
        core_defer();
    }
    port_ticks += hal_ticks() - first;
}

void port0_interrupt(void)
{
    serve_port(PORT_BEFORE + 1u);
}

void port1_interrupt(void)
{
    serve_port(PORT_BEHIND + 1u);
}
#endif

void uart_interrupt(void)
{
    drain(0);
}

/* Unmasks the interrupt of a UART whose ring was full. Returns whether the ring, empty before, now has bytes. */
static int32_t refill(uint32_t uart)
{
    receive_ring *const ring = &rings[uart];
    if (ring->stalled) {
        core_interrupts_off();
        ring->stalled = 0;
        core_irq(irqs[uart], 1);
        drain(uart); /* a byte that already waits need not raise the interrupt again */
        core_interrupts_on();
    }
    return ring->tail != ring->head;
}

static int32_t ring_read(uint32_t uart)
{
    receive_ring *const ring = &rings[uart];
    if (ring->tail == ring->head && !refill(uart)) {
        return -1;
    }
    const uint8_t byte = ring->bytes[ring->tail];
    ring->tail = (uint8_t)(ring->tail + 1u);
    return byte;
}

int32_t hal_uart_read(void)
{
    return ring_read(0);
}

void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uart_send(MCUD_UART_BASE, bytes[i]);
    }
}

static bool busy(void)
{
#if MCUD_UARTS > 1
    return port_busy();
#else
    return false;
#endif
}

void hal_wait(void)
{
    core_interrupts_off(); /* between the check and the sleep no byte may slip in unseen */
    drain(0);
    if (rings[0].tail == rings[0].head && !rings[0].stalled && !busy()) {
        core_sleep();
    }
    core_interrupts_on();
}

#if MCUD_UARTS > 1
void hal_port_init(void)
{
    static const uint8_t send_irqs[MCUD_UARTS] = {MCUD_UART_SEND_IRQS};
    const uint32_t clock_hz = port_init();
    for (uint32_t uart = 1; uart < MCUD_UARTS; uart++) {
        uart_init(bases[uart], clock_hz, MCUD_PORT_BAUD);
        core_irq(irqs[uart], 1);
        core_irq(send_irqs[uart], 1);
    }
}

uint32_t hal_port_waiting(uint32_t port, const uint8_t **bytes)
{
    receive_ring *const ring = &rings[port + 1u];
    if (ring->tail == ring->head) {
        (void)refill(port + 1u);
    }
    const uint32_t tail = ring->tail;
    const uint32_t head = ring->head;
    *bytes = (const uint8_t *)ring->bytes + tail; /* the interrupt writes elsewhere until they are taken */
    return head >= tail ? head - tail : sizeof ring->bytes - tail;
}

void hal_port_take(uint32_t port, uint32_t count)
{
    receive_ring *const ring = &rings[port + 1u];
    __asm__ volatile("" ::: "memory"); /* all reads of the bytes come before */
    ring->tail = (uint8_t)(ring->tail + count);
}

void hal_port_send(uint32_t port, const uint8_t *bytes, uint32_t count)
{
    send_queue *const queue = &queues[port + 1u];
    core_interrupts_off();
    queue->next = bytes;
    queue->left = count;
    feed_transmitter(port + 1u);
    core_interrupts_on();
}

bool hal_port_sending(uint32_t port)
{
    return queues[port + 1u].left > 0u;
}

void hal_port_wake(void)
{
    core_defer();
}

void hal_port_poll(void)
{
}

uint32_t hal_port_ticks(void)
{
    return port_ticks;
}
#endif
