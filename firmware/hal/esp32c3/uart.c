/* The UARTs of an ESP32-C3, with FIFOs of 128 bytes. */
#include <stdint.h>

#include "hal_parts.h"
#include "registers.h"

/* ESP32-C3 Technical Reference Manual: UART Controller */
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
#define UART_CONF0_RXFIFO_RST (1u << 17)
#define UART_CONF0_MEM_CLK_EN (1u << 28)
#define UART_CLK_CONF 0x78u
#define UART_CLK_CONF_SCLK_SEL(n) ((n) << 20)
#define UART_CLK_CONF_SCLK_EN (1u << 22)
#define UART_CLK_CONF_TX_SCLK_EN (1u << 24)
#define UART_CLK_CONF_RX_SCLK_EN (1u << 25)

#define FROM_CRYSTAL 3u
#define EIGHT_BITS 3u
#define ONE_STOP_BIT 1u
#define FIFO_BYTES 128u
#define COUNT 0x3FFu

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    const uint32_t sixteenths = (clock_hz * 16u + baud / 2u) / baud;
    const uint32_t format = UART_CONF0_BIT_NUM(EIGHT_BITS) | UART_CONF0_STOP_BIT_NUM(ONE_STOP_BIT) | UART_CONF0_MEM_CLK_EN;
    reg_write(base + UART_CLK_CONF, UART_CLK_CONF_SCLK_SEL(FROM_CRYSTAL) | UART_CLK_CONF_SCLK_EN | UART_CLK_CONF_TX_SCLK_EN |
                                        UART_CLK_CONF_RX_SCLK_EN);
    reg_write(base + UART_CLKDIV, UART_CLKDIV_CLKDIV(sixteenths / 16u) | UART_CLKDIV_FRAG(sixteenths % 16u));
    reg_write(base + UART_CONF0, format | UART_CONF0_RXFIFO_RST); /* drops bytes that the ROM left in the FIFO */
    reg_write(base + UART_CONF0, format);
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
