/* Receive rings between the UARTs' interrupts and who reads them: UART 0 is the host's, further ones are ports to
 * other boards. A ring has one writer and one reader.
 *
 * 256 bytes of each are static RAM: one frame of the protocol, and as much as 8-bit indices wrap around for free.
 * When a ring is full its interrupt is kept from the core and the byte stays in the UART: an emulated line then
 * waits (nothing is lost), a real one overruns.
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
    volatile uint8_t stalled; /* the interrupt is kept from the core: the ring was full */
} receive_ring;

static const uintptr_t bases[MCUD_UARTS] = {MCUD_UART_BASES};
static const uint8_t irqs[MCUD_UARTS] = {MCUD_UART_IRQS};
static receive_ring rings[MCUD_UARTS];

/* Moves what a UART holds into its ring; 1 if its reader should look at once: a frame has ended, or the ring is
 * half full. Interrupts are off, or this is the interrupt. */
static int32_t drain(uint32_t uart)
{
    receive_ring *const ring = &rings[uart];
    int32_t urgent = 0;
    while (uart_receive_ready(bases[uart])) {
        const uint8_t next = (uint8_t)(ring->head + 1u);
        if (next == ring->tail) {
            ring->stalled = 1;
            core_irq(irqs[uart], 0);
            return urgent;
        }
        const uint8_t byte = uart_receive(bases[uart]);
        ring->bytes[ring->head] = byte;
        ring->head = next;
        urgent |= byte == 0u || (uint8_t)(next - ring->tail) >= 128u;
    }
    return urgent;
}

#if MCUD_UARTS > 1
typedef struct {
    const uint8_t *next;
    volatile uint32_t left;
} send_queue;

static send_queue queues[MCUD_UARTS];

/* Gives the transmitter what it takes, and asks for an interrupt where something is left. Interrupts are off, or this
 * is the interrupt. */
static void feed_transmitter(uint32_t uart)
{
    send_queue *const queue = &queues[uart];
    const uintptr_t base = bases[uart];
    do {
        while (queue->left > 0u && uart_send_ready(base)) {
            uart_send(base, *queue->next);
            queue->next++;
            queue->left--;
        }
        uart_send_interrupt(base, queue->left > 0u);
    } while (queue->left > 0u && uart_send_ready(base)); /* it became ready before it was asked */
}

static int32_t serve_ports(void)
{
    int32_t urgent = 0;
    for (uint32_t uart = 1; uart < MCUD_UARTS; uart++) {
        const uint32_t left = queues[uart].left;
        urgent |= drain(uart);
        if (left > 0u) {
            feed_transmitter(uart);
            urgent |= queues[uart].left == 0u;
        }
    }
    return urgent;
}
#endif

void uart_interrupt(void)
{
    (void)drain(0);
#if MCUD_UARTS > 1
    if (serve_ports()) {
        core_defer();
    }
#endif
}

static int32_t ring_read(uint32_t uart)
{
    receive_ring *const ring = &rings[uart];
    if (ring->tail == ring->head) {
        if (!ring->stalled) {
            return -1;
        }
        core_interrupts_off();
        ring->stalled = 0;
        core_irq(irqs[uart], 1);
        (void)drain(uart); /* a byte that already waits need not raise the interrupt again */
        core_interrupts_on();
        if (ring->tail == ring->head) {
            return -1;
        }
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
    (void)drain(0);
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

int32_t hal_port_read(uint32_t port)
{
    return ring_read(port + 1u);
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
#endif
