/* What all newer STM32 share: clocks of peripherals, pins of the same GPIO block. */
#ifndef MCUD_STM32_H
#define MCUD_STM32_H

#include <stdint.h>

#include "registers.h"

#define GPIO_MODER 0x00u
#define GPIO_OSPEEDR 0x08u
#define GPIO_PUPDR 0x0Cu
#define GPIO_AFRL 0x20u
#define GPIO_AFRH 0x24u

/* Far above any oscillator's or PLL's start-up time in the data sheets; an emulator may never get ready. */
#define READY_ATTEMPTS 100000u

/* The read gives the clock the two cycles that it takes to arrive. */
static inline void clock_enable(uintptr_t enable_register, uint32_t bits)
{
    reg_set(enable_register, bits);
    (void)reg_read(enable_register);
}

/* A pin of medium speed for a peripheral, pulled up: quiet where nothing is connected. */
static inline void gpio_alternate(uintptr_t port, uint32_t pin, uint32_t function)
{
    const uint32_t nibble = 4u * (pin % 8u);
    const uint32_t pair = 2u * pin;
    reg_change(port + (pin < 8u ? GPIO_AFRL : GPIO_AFRH), 15u << nibble, function << nibble);
    reg_change(port + GPIO_PUPDR, 3u << pair, 1u << pair);
    reg_change(port + GPIO_OSPEEDR, 3u << pair, 1u << pair);
    reg_change(port + GPIO_MODER, 3u << pair, 2u << pair);
}

#endif
