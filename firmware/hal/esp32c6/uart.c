/* The UARTs of an ESP32-C6, with FIFOs of 128 bytes. New settings take effect by a request, take_over(). */
#include <stdint.h>

#include "hal_parts.h"
#include "registers.h"

/* ESP32-C6 Technical Reference Manual: UART Controller */
#define UART_FIFO 0x0u
#define UART_CLKDIV 0x14u
#define UART_CLKDIV_CLKDIV(n) ((n) << 0)
#define UART_CLKDIV_FRAG(n) ((n) << 20)
#define UART_STATUS 0x1Cu
#define UART_STATUS_RXFIFO_CNT(n) ((n) << 0)
#define UART_STATUS_TXFIFO_CNT(n) ((n) << 16)
#define UART_CONF0 0x20u
#define UART_CONF0_BIT_NUM(n) ((n) << 2)
#define UART_CONF0_STOP_BIT_NUM(n) ((n) << 4)
#define UART_CONF0_MEM_CLK_EN (1u << 20)
#define UART_CONF0_RXFIFO_RST (1u << 22)
#define UART_REG_UPDATE 0x98u
#define UART_REG_UPDATE_REG_UPDATE (1u << 0)

#define EIGHT_BITS 3u
#define ONE_STOP_BIT 1u
#define FIFO_BYTES 128u
#define COUNT 0xFFu
#define ATTEMPTS 1000u

static void take_over(uintptr_t base)
{
    reg_write(base + UART_REG_UPDATE, UART_REG_UPDATE_REG_UPDATE);
    (void)reg_wait(base + UART_REG_UPDATE, UART_REG_UPDATE_REG_UPDATE, 0u, ATTEMPTS);
}

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    const uint32_t sixteenths = (clock_hz * 16u + baud / 2u) / baud;
    const uint32_t format = UART_CONF0_BIT_NUM(EIGHT_BITS) | UART_CONF0_STOP_BIT_NUM(ONE_STOP_BIT) | UART_CONF0_MEM_CLK_EN;
    reg_write(base + UART_CLKDIV, UART_CLKDIV_CLKDIV(sixteenths / 16u) | UART_CLKDIV_FRAG(sixteenths % 16u));
    reg_write(base + UART_CONF0, format | UART_CONF0_RXFIFO_RST); /* drops bytes that the ROM left in the FIFO */
    take_over(base);
    reg_write(base + UART_CONF0, format);
    take_over(base);
}

int32_t uart_receive_ready(uintptr_t base)
{
    return (reg_read(base + UART_STATUS) & UART_STATUS_RXFIFO_CNT(COUNT)) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return (uint8_t)reg_read(base + UART_FIFO);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while (((reg_read(base + UART_STATUS) & UART_STATUS_TXFIFO_CNT(COUNT)) >> 16) >= FIFO_BYTES - 1u) {
    }
    reg_write(base + UART_FIFO, byte);
}
