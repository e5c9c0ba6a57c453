/* The cycle counter of ESP32-C3 and C6: the core lacks mcycle and has private counters. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_hal.h"

__asm__(".option arch, +zicsr");

/* Technical Reference Manuals: ESP-RISC-V CPU, performance counter registers mpcer, mpcmr, mpccr */
void timer_init(void)
{
    __asm__ volatile("csrw 0x7E0, %0" ::"r"(1u)); /* count cycles */
    __asm__ volatile("csrw 0x7E1, %0" ::"r"(1u)); /* on, and wrap */
}

uint32_t hal_ticks(void)
{
    uint32_t value;
    __asm__ volatile("csrr %0, 0x7E2" : "=r"(value) : : "memory");
    return value;
}

uint32_t hal_ticks_hz(void)
{
    return hal_clock_hz();
}
