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

/* Moves what a UART holds into its ring. Interrupts are off, or this is the interrupt. */
static void drain(uint32_t uart)
{
    receive_ring *const ring = &rings[uart];
    while (uart_receive_ready(bases[uart])) {
        const uint8_t next = (uint8_t)(ring->head + 1u);
        if (next == ring->tail) {
            ring->stalled = 1;
            core_irq(irqs[uart], 0);
            return;
        }
        ring->bytes[ring->head] = uart_receive(bases[uart]);
        ring->head = next;
    }
}

void uart_interrupt(void)
{
    for (uint32_t uart = 0; uart < MCUD_UARTS; uart++) {
        drain(uart);
    }
#if MCUD_UARTS > 1
    for (uint32_t uart = 1; uart < MCUD_UARTS; uart++) {
        uart_send_interrupt(bases[uart], 0);
    }
    core_defer();
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
        drain(uart); /* a byte that already waits need not raise the interrupt again */
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

void hal_wait(hal_condition *ready)
{
    core_interrupts_off(); /* between the check and the sleep no byte may slip in unseen */
    drain(0);
    if (rings[0].tail == rings[0].head && !rings[0].stalled && (ready == NULL || !ready())) {
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

uint32_t hal_port_write(uint32_t port, const uint8_t *bytes, uint32_t count)
{
    const uintptr_t base = bases[port + 1u];
    for (uint32_t i = 0; i < count; i++) {
        if (!uart_send_ready(base)) {
            uart_send_interrupt(base, 1);
            if (!uart_send_ready(base)) { /* it did not become ready in between */
                return i;
            }
        }
        uart_send(base, bytes[i]);
    }
    return count;
}

void hal_port_wake(void)
{
    core_defer();
}
#endif
