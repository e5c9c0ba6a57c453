/* The USART of STM32F7, H7 and L4: status, separate receive and transmit registers; used without its FIFO. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"

/* RM0351: 40.8, RM0385: 31.8, RM0433: 48.7 */
#define USART_CR1 0x00u
#define USART_CR1_UE (1u << 0)
#define USART_CR1_RE (1u << 2)
#define USART_CR1_TE (1u << 3)
#define USART_CR1_RXNEIE (1u << 5)
#define USART_CR1_TXEIE (1u << 7)
#define USART_BRR 0x0Cu
#define USART_ISR 0x1Cu
#define USART_ISR_ORE (1u << 3)
#define USART_ISR_RXNE (1u << 5)
#define USART_ISR_TXE (1u << 7)
#define USART_ICR 0x20u
#define USART_ICR_ORECF (1u << 3)
#define USART_RDR 0x24u
#define USART_TDR 0x28u

void uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    reg_write(base + USART_BRR, (clock_hz + baud / 2u) / baud); /* oversampling by 16 */
    reg_write(base + USART_CR1, USART_CR1_UE | USART_CR1_TE | USART_CR1_RE | USART_CR1_RXNEIE);
}

int32_t uart_receive_ready(uintptr_t base)
{
    const uint32_t status = reg_read(base + USART_ISR);
    if ((status & USART_ISR_ORE) != 0u) { /* keeps the interrupt pending until it is cleared */
        reg_write(base + USART_ICR, USART_ICR_ORECF);
    }
    return (status & USART_ISR_RXNE) != 0u;
}

uint8_t uart_receive(uintptr_t base)
{
    return (uint8_t)reg_read(base + USART_RDR);
}

int32_t uart_send_ready(uintptr_t base)
{
    return (reg_read(base + USART_ISR) & USART_ISR_TXE) != 0u;
}

void uart_send_interrupt(uintptr_t base, int32_t on)
{
    reg_change(base + USART_CR1, USART_CR1_TXEIE, on ? USART_CR1_TXEIE : 0u);
}

void uart_send(uintptr_t base, uint8_t byte)
{
    while (!uart_send_ready(base)) {
    }
    reg_write(base + USART_TDR, byte);
}

uint32_t uart_send_some(uintptr_t base, const uint8_t *bytes, uint32_t count)
{
    uint32_t sent = 0;
    while (sent < count && uart_send_ready(base)) {
        reg_write(base + USART_TDR, bytes[sent]);
        sent++;
    }
    return sent;
}
