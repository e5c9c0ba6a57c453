/* The USART of STM32F1 and F4: status and data registers, one byte deep. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"

#define USART_SR 0x00u
#define USART_DR 0x04u
#define USART_BRR 0x08u
#define USART_CR1 0x0Cu

#define USART_SR_ORE (1u << 3)
#define USART_SR_RXNE (1u << 5)
#define USART_SR_TXE (1u << 7)
#define USART_CR1_RE (1u << 2)
#define USART_CR1_TE (1u << 3)
#define USART_CR1_RXNEIE (1u << 5)
#define USART_CR1_TXEIE (1u << 7)
#define USART_CR1_UE (1u << 13)

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    reg_write(base + USART_BRR, (clock_hz + baud / 2u) / baud); /* oversampling by 16 */
    reg_write(base + USART_CR1, USART_CR1_UE | USART_CR1_TE | USART_CR1_RE | USART_CR1_RXNEIE);
}

int32_t uart_receive_ready(uintptr_t base)
{
    /* An overrun keeps the interrupt pending until the data register is read, even when it holds nothing new. */
    return (reg_read(base + USART_SR) & (USART_SR_RXNE | USART_SR_ORE)) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return (uint8_t)reg_read(base + USART_DR);
}

int32_t uart_send_ready(uintptr_t base)
{
    return (reg_read(base + USART_SR) & USART_SR_TXE) != 0u;
}

void uart_send_interrupt(uintptr_t base, int32_t on)
{
    reg_change(base + USART_CR1, USART_CR1_TXEIE, on ? USART_CR1_TXEIE : 0u);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while (!uart_send_ready(base)) {
    }
    reg_write(base + USART_DR, byte);
}

uint32_t uart_send_some(uintptr_t base, const uint8_t *bytes, uint32_t count)
{
    uint32_t sent = 0;
    while (sent < count && uart_send_ready(base)) {
        reg_write(base + USART_DR, bytes[sent]);
        sent++;
    }
    return sent;
}
