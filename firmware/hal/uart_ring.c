/* Receive ring between the UART's interrupt and the main loop. One writer, one reader.
 *
 * 256 bytes are static RAM: one frame of the protocol, and as much as 8-bit indices wrap around for free.
 * When the ring is full the interrupt is kept from the core and the byte stays in the UART: an emulated
 * line then waits (nothing is lost), a real one overruns.
 */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_hal.h"

static volatile uint8_t ring[256];
static volatile uint8_t ring_head; /* next to be written */
static volatile uint8_t ring_tail; /* next to be read */
static volatile uint8_t stalled;   /* the interrupt is kept from the core: the ring was full */

/* Moves what the UART holds into the ring. Interrupts are off, or this is the interrupt. */
static void drain(void)
{
    while (uart_receive_ready()) {
        const uint8_t next = (uint8_t)(ring_head + 1u);
        if (next == ring_tail) {
            stalled = 1;
            core_uart_irq(0);
            return;
        }
        ring[ring_head] = uart_receive();
        ring_head = next;
    }
}

void uart_interrupt(void)
{
    drain();
}

int32_t hal_uart_read(void)
{
    if (ring_tail == ring_head) {
        if (!stalled) {
            return -1;
        }
        core_interrupts_off();
        stalled = 0;
        core_uart_irq(1);
        drain(); /* a byte that already waits need not raise the interrupt again */
        core_interrupts_on();
        if (ring_tail == ring_head) {
            return -1;
        }
    }
    const uint8_t byte = ring[ring_tail];
    ring_tail = (uint8_t)(ring_tail + 1u);
    return byte;
}

void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uart_send(bytes[i]);
    }
}

void hal_wait(void)
{
    core_interrupts_off(); /* between the check and the sleep no byte may slip in unseen */
    drain();
    if (ring_tail == ring_head && !stalled) {
        core_sleep();
    }
    core_interrupts_on();
}
