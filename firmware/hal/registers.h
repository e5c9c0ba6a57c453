/* Access to device registers by address. */
#ifndef MCUD_REGISTERS_H
#define MCUD_REGISTERS_H

#include <stdint.h>

static inline uint32_t reg_read(uintptr_t address)
{
    return *(volatile uint32_t *)address;
}

static inline void reg_write(uintptr_t address, uint32_t value)
{
    *(volatile uint32_t *)address = value;
}

static inline void reg_set(uintptr_t address, uint32_t bits)
{
    reg_write(address, reg_read(address) | bits);
}

/* Replaces the bits under `mask`; `value` has no others. */
static inline void reg_change(uintptr_t address, uint32_t mask, uint32_t value)
{
    reg_write(address, (reg_read(address) & ~mask) | value);
}

/* Waits until (register & mask) == value; 0 when that did not happen within `attempts` reads. */
static inline int32_t reg_wait(uintptr_t address, uint32_t mask, uint32_t value, uint32_t attempts)
{
    while (attempts-- > 0u) {
        if ((reg_read(address) & mask) == value) {
            return 1;
        }
    }
    return 0;
}

#endif
