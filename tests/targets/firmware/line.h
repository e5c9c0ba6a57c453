/* Bytes and words over the board's UART. */
#ifndef LINE_H
#define LINE_H

#include <stdint.h>

#include "mcud_hal.h"

static inline void send(const void *bytes, uint32_t count)
{
    hal_uart_write((const uint8_t *)bytes, count);
}

static inline void send_word(uint32_t word)
{
    const uint8_t bytes[4] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16), (uint8_t)(word >> 24)};
    send(bytes, 4);
}

static inline uint8_t receive(void)
{
    int32_t byte = hal_uart_read();
    while (byte < 0) {
        hal_wait();
        byte = hal_uart_read();
    }
    return (uint8_t)byte;
}

static inline uint32_t receive_word(void)
{
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4u; i++) {
        word |= (uint32_t)receive() << (8u * i);
    }
    return word;
}

#endif
