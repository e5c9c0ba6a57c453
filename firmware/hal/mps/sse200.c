/* The second core of Arm's SSE-200 subsystem: held in reset until it is released, woken by message handling unit 0. */
#include <stdint.h>

#include "hal_parts.h"
#include "registers.h"

#define INITSVTOR1 0x50021114u
#define CPUWAIT 0x50021118u
#define CPUWAIT_CPU1 2u

#define MHU_CPU1_SET 0x50003014u
#define MHU_CPU1_CLEAR 0x50003018u
#define MHU_IRQ 6u

#define NVIC_ISER 0xE000E100u
#define NVIC_ICPR 0xE000E280u

void unit_release(const void *vectors)
{
    reg_write(INITSVTOR1, (uint32_t)(uintptr_t)vectors);
    reg_write(CPUWAIT, reg_read(CPUWAIT) & ~CPUWAIT_CPU1);
}

void unit_wake(void)
{
    reg_write(MHU_CPU1_SET, 1u);
}

void unit_init(void)
{
    reg_write(NVIC_ISER, 1u << MHU_IRQ);
}

/* A message between the end of the sleep and the clear is not lost: the caller looks for its step next. */
void unit_sleep(void)
{
    core_sleep();
    reg_write(MHU_CPU1_CLEAR, 1u);
    reg_write(NVIC_ICPR, 1u << MHU_IRQ);
    __asm__ volatile("dsb" ::: "memory");
}
