/* Runs a network once. It sends READY, receives the inputs, runs, and sends the bytes of stack that the run took, as
 * 32 bits, and the outputs. Instructions count from network_run to network_done. */
#include "mcud_hal.h"
#include "network.h"

/* MARGIN spares the frame of paint itself. */
enum { READY = 'R', PAINT = 0x5A, MARGIN = 64 };

void network_done(void);

__attribute__((noinline)) void network_done(void)
{
    __asm__ volatile("" ::: "memory");
}

static uint8_t receive(void)
{
    int32_t byte = hal_uart_read();
    while (byte < 0) {
        hal_wait();
        byte = hal_uart_read();
    }
    return (uint8_t)byte;
}

static __attribute__((noinline)) void paint(void)
{
    const uint8_t *const end = (const uint8_t *)__builtin_frame_address(0) - MARGIN;
    for (volatile uint8_t *at = hal_stack_limit(); at < end; at++) {
        *at = PAINT;
    }
}

static uint32_t painted_over(void)
{
    const volatile uint8_t *at = hal_stack_limit();
    while (at < hal_stack_top() && *at == PAINT) {
        at++;
    }
    return (uint32_t)(hal_stack_top() - at);
}

int main(void)
{
    const uint8_t ready = READY;
    hal_init();
    hal_uart_write(&ready, 1u);
    for (uint32_t i = 0; i < network_inputs; i++) {
        const network_buffer input = network_input(i);
        for (uint32_t at = 0; at < input.count; at++) {
            input.bytes[at] = receive();
        }
    }
    paint();
    network_run();
    network_done();
    const uint32_t stack = painted_over();
    const uint8_t sent[4] = {(uint8_t)stack, (uint8_t)(stack >> 8), (uint8_t)(stack >> 16), (uint8_t)(stack >> 24)};
    hal_uart_write(sent, sizeof sent);
    for (uint32_t i = 0; i < network_outputs; i++) {
        const network_buffer output = network_output(i);
        hal_uart_write(output.bytes, output.count);
    }
    return stack >= (uint32_t)(hal_stack_top() - hal_stack_limit());
}
