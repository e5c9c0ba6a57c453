/* Common parts of all newer STM32: clocks of peripherals, pins of the same GPIO block. */
#ifndef MCUD_STM32_H
#define MCUD_STM32_H

#include <stdint.h>

#include "registers.h"

#define GPIO_MODER 0x00u
#define GPIO_OSPEEDR 0x08u
#define GPIO_PUPDR 0x0Cu
#define GPIO_AFRL 0x20u
#define GPIO_AFRH 0x24u

/* Ports of 16 pins each, one after another; the USARTs 1 to 3 have this function on all of their pins. */
#define PORT_BYTES 0x400u
#define PORT_PINS 16u
#define USART_FUNCTION 7u

/* Far above any oscillator's or PLL's start-up time in the data sheets; in an emulator it may never be ready. */
#define READY_ATTEMPTS 100000u

/* The read delays the two cycles until the clock arrives. */
static inline void clock_enable(uintptr_t enable_register, uint32_t bits)
{
    reg_set(enable_register, bits);
    (void)reg_read(enable_register);
}

/* The use of a pin by a peripheral: the number of the function, and the speed of the pin. */
typedef struct {
    uint32_t function;
    uint32_t speed;
} pin_use;

#define MEDIUM_SPEED 1u
#define VERY_HIGH_SPEED 3u

/* Connects a pin to a peripheral, and pulls it up: quiet if nothing is connected. */
static inline void gpio_alternate(uintptr_t port, uint32_t pin, pin_use use)
{
    const uint32_t nibble = 4u * (pin % 8u);
    const uint32_t pair = 2u * pin;
    reg_change(port + (pin < 8u ? GPIO_AFRL : GPIO_AFRH), 15u << nibble, use.function << nibble);
    reg_change(port + GPIO_PUPDR, 3u << pair, 1u << pair);
    reg_change(port + GPIO_OSPEEDR, 3u << pair, use.speed << pair);
    reg_change(port + GPIO_MODER, 3u << pair, 2u << pair);
}

/* Connects a pin of any port to a peripheral. `port_a`: the address of port A; `enable_a`: the bit of its clock. */
static inline void peripheral_pin(uintptr_t enable_register, uint32_t enable_a, uintptr_t port_a, uint32_t pin,
                                  pin_use use)
{
    const uint32_t port = pin / PORT_PINS;
    clock_enable(enable_register, enable_a << port);
    gpio_alternate(port_a + PORT_BYTES * port, pin % PORT_PINS, use);
}

/* Connects a pin of the line to the host. */
static inline void usart_pin(uintptr_t enable_register, uint32_t enable_a, uintptr_t port_a, uint32_t pin)
{
    peripheral_pin(enable_register, enable_a, port_a, pin, (pin_use){USART_FUNCTION, MEDIUM_SPEED});
}

#endif
