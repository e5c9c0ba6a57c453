/* The USART of STM32F1 and F4: status and data registers, one byte deep. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"

#define USART_SR (MCUD_UART_BASE + 0x00u)
#define USART_DR (MCUD_UART_BASE + 0x04u)
#define USART_BRR (MCUD_UART_BASE + 0x08u)
#define USART_CR1 (MCUD_UART_BASE + 0x0Cu)

#define SR_ORE (1u << 3)
#define SR_RXNE (1u << 5)
#define SR_TXE (1u << 7)
#define CR1_RE (1u << 2)
#define CR1_TE (1u << 3)
#define CR1_RXNEIE (1u << 5)
#define CR1_UE (1u << 13)

void uart_init(uint32_t clock_hz)
{
    reg_write(USART_BRR, (clock_hz + MCUD_UART_BAUD / 2u) / MCUD_UART_BAUD); /* oversampling by 16 */
    reg_write(USART_CR1, CR1_UE | CR1_TE | CR1_RE | CR1_RXNEIE);
    core_uart_irq(1);
}

int32_t uart_receive_ready(void)
{
    /* An overrun keeps the interrupt pending until the data register is read, even when it holds nothing new. */
    return (reg_read(USART_SR) & (SR_RXNE | SR_ORE)) != 0u;
}

uint8_t uart_receive(void)
{
    return (uint8_t)reg_read(USART_DR);
}

void uart_send(uint8_t byte)
{
    while ((reg_read(USART_SR) & SR_TXE) == 0u) {
    }
    reg_write(USART_DR, byte);
}
