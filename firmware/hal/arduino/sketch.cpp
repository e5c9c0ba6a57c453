/* The measurer as a sketch, for any board with an Arduino core: the line to the host is Serial. */
#include <Arduino.h>
#include <stdlib.h>

extern "C" {
#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "measurer.h"
}

static uint8_t *stack_top;

void setup()
{
    stack_top = static_cast<uint8_t *>(__builtin_frame_address(0));
    measurer_start();
}

void loop()
{
    measurer_turn();
}

void hal_init(void)
{
    Serial.begin(MCUD_UART_BAUD);
    timer_init();
}

uint32_t hal_clock_hz(void)
{
    return static_cast<uint32_t>(F_CPU);
}

/* At the end of a frame, waits for the last byte, so that sending does not interrupt a kernel that is timed. */
void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    Serial.write(bytes, count);
    if (count > 0u && bytes[count - 1u] == 0u) {
        Serial.flush();
    }
}

int32_t hal_uart_read(void)
{
    return Serial.read();
}

void hal_wait(void)
{
    yield();
}

uint8_t *hal_stack_limit(void)
{
    return stack_top - MCUD_STACK_BYTES;
}

uint8_t *hal_stack_top(void)
{
    return stack_top;
}

void hal_exit(int32_t)
{
    abort();
}
