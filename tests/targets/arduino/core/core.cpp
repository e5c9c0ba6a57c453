#include "Arduino.h"

#include <stdlib.h>

extern "C" {
#include "mcud_hal.h"
}

SerialLine Serial;

/* The line is silent until a sketch begins it. */
static bool begun;

void SerialLine::begin(unsigned long baud)
{
    begun = baud == 115200ul;
}

int SerialLine::read(void)
{
    return begun ? static_cast<int>(hal_uart_read()) : -1;
}

size_t SerialLine::write(const uint8_t *bytes, size_t count)
{
    if (begun) {
        hal_uart_write(bytes, static_cast<uint32_t>(count));
    }
    return count;
}

void SerialLine::flush(void)
{
}

/* Must be called before the board's own counter has wrapped. */
unsigned long micros(void)
{
    static uint64_t total;
    static uint32_t last;
    const uint32_t now = hal_ticks();
    total += now - last;
    last = now;
    return static_cast<unsigned long>(total * 1000000u / hal_ticks_hz());
}

void yield(void)
{
    hal_wait();
}

extern "C" void abort(void)
{
    hal_exit(EXIT_FAILURE);
    for (;;) {
    }
}

int main()
{
    hal_init();
    setup();
    for (;;) {
        loop();
    }
}
