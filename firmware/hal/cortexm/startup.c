/* Vector table, start, faults, exit: the same for every Cortex-M. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "mcud_ports.h"
#include "registers.h"

#define SCB_VTOR 0xE000ED08u
#define SCB_AIRCR 0xE000ED0Cu
#define AIRCR_RESET 0x05FA0004u /* SYSRESETREQ with its key */
#define SCB_CFSR 0xE000ED28u
#define SCB_ICSR 0xE000ED04u
#define ICSR_PENDSV_SET (1u << 28)
#define SCB_SHPR3 0xE000ED20u
#define SHPR3_PENDSV_LEAST (0xFFu << 16)
#define NVIC_ISER 0xE000E100u
#define NVIC_ICER 0xE000E180u

#define SYS_EXIT_EXTENDED 0x20u
#define ADP_APPLICATION_EXIT 0x20026u

int main(void);
void reset_handler(void);
void fault_handler(void);
void cortexm_start(void);
void cortexm_fault(const uint32_t *frame);
int *__errno(void);

typedef void handler(void);

/* An interrupt without an entry causes a fault, which is reported. */
struct vector_table {
    uint8_t *stack;
    handler *core[15];
    handler *device[MCUD_LAST_IRQ + 1];
};

__attribute__((section(".vectors"), used)) const struct vector_table mcud_vectors = {
    .stack = mcud_stack_top,
    .core = {[0] = reset_handler,
             [1] = fault_handler,
             [2] = fault_handler,
             [3] = fault_handler,
             [4] = fault_handler,
             [5] = fault_handler,
             [6] = fault_handler,
#if MCUD_UARTS > 1
             [13] = port_work,
#endif
             [14] = core_timer_interrupt},
    .device = {MCUD_UART_VECTORS MCUD_DMA_VECTORS},
};

__attribute__((weak)) void core_timer_interrupt(void)
{
}

void core_interrupts_off(void)
{
    __asm__ volatile("cpsid i" ::: "memory");
}

void core_interrupts_on(void)
{
    __asm__ volatile("cpsie i" ::: "memory");
}

void core_sleep(void)
{
    __asm__ volatile("dsb\n\twfi" ::: "memory");
}

void core_irq(uint32_t irq, int32_t on)
{
    const uintptr_t base = on ? NVIC_ISER : NVIC_ICER;
    reg_write(base + 4u * (irq / 32u), 1u << (irq % 32u));
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

/* By PendSV, which has the least priority, so all other interrupts come first. */
void core_defer(void)
{
    reg_write(SCB_ICSR, ICSR_PENDSV_SET);
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

/* Asks the emulator for a service. Only where MCUD_EMULATED: on hardware the instruction faults. */
static void semihosting(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void hal_exit(int32_t code)
{
    if (MCUD_EMULATED) {
        const uint32_t block[2] = {ADP_APPLICATION_EXIT, (uint32_t)code};
        semihosting(SYS_EXIT_EXTENDED, block);
    }
    __asm__ volatile("dsb" ::: "memory");
    reg_write(SCB_AIRCR, AIRCR_RESET);
    for (;;) {
    }
}

void cortexm_report_fault(const uint32_t *frame, const uint8_t *limit, const uint8_t *top)
{
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    report_value("exception ", exception);
    const uintptr_t address = (uintptr_t)frame;
    if (address >= (uintptr_t)limit && address + 32u <= (uintptr_t)top) {
        report_value(" pc ", frame[6]);
        report_value(" lr ", frame[5]);
    } else {
        report_value(" stack overflow, sp ", (uint32_t)address);
    }
#ifndef __ARM_ARCH_6M__
    report_value(" cfsr ", reg_read(SCB_CFSR));
#endif
    report_text("\n");
}

void cortexm_fault(const uint32_t *frame)
{
    if (MCUD_EMULATED) {
        cortexm_report_fault(frame, mcud_stack_limit, mcud_stack_top);
    }
    hal_exit(EXIT_FAULT);
}

/* The mathematical functions set errno; the library's own would bring 100 bytes of reentrancy state into RAM. */
int *__errno(void)
{
    static int value;
    return &value;
}

void cortexm_start(void)
{
#ifndef __ARM_ARCH_6M__
    reg_write(SCB_VTOR, (uint32_t)(uintptr_t)&mcud_vectors); /* a boot loader may have left its own */
#endif
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    __asm__ volatile("msr msplim, %0" ::"r"(mcud_stack_limit)); /* an overflow faults instead of destroying data */
#endif
    memory_init();
    reg_set(SCB_SHPR3, SHPR3_PENDSV_LEAST);
    hal_exit(main());
}
