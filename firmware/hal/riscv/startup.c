/* Start, interrupts, faults and exit of QEMU's RISC-V virt machine. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"

__asm__(".option arch, +zicsr");

#define PLIC 0x0C000000u
#define PLIC_PRIORITY(irq) (PLIC + 4u * (irq))
#define PLIC_ENABLE (PLIC + 0x2000u)
#define PLIC_THRESHOLD (PLIC + 0x200000u)
#define PLIC_CLAIM (PLIC + 0x200004u)
#define TEST_DEVICE 0x00100000u

#define MSTATUS_MIE 8u
#define MIE_EXTERNAL (1u << 11)
#define CAUSE_EXTERNAL 0x8000000Bu

int main(void);
void riscv_start(void);
void riscv_trap(uint32_t cause, uint32_t address);

void core_interrupts_off(void)
{
    __asm__ volatile("csrc mstatus, %0" ::"r"(MSTATUS_MIE) : "memory");
}

void core_interrupts_on(void)
{
    __asm__ volatile("csrs mstatus, %0" ::"r"(MSTATUS_MIE) : "memory");
}

void core_sleep(void)
{
    __asm__ volatile("wfi" ::: "memory");
}

void core_irq(uint32_t irq, int32_t on)
{
    reg_change(PLIC_ENABLE, 1u << irq, on ? 1u << irq : 0u);
}

uint32_t hal_clock_hz(void)
{
    return MCUD_CLOCK_HZ;
}

void hal_exit(int32_t code)
{
    const uint32_t pass = 0x5555u;
    const uint32_t fail = 0x3333u;
    reg_write(TEST_DEVICE, code == 0 ? pass : ((uint32_t)code << 16) | fail);
    for (;;) {
    }
}

void riscv_trap(uint32_t cause, uint32_t address)
{
    if (cause != CAUSE_EXTERNAL) {
        report_value("mcause ", cause);
        report_value(" mepc ", address);
        report_text("\n");
        hal_exit(EXIT_FAULT);
    }
    const uint32_t irq = reg_read(PLIC_CLAIM);
    if (irq == MCUD_UART_IRQ) {
        uart_interrupt();
    }
    if (irq != 0u) {
        reg_write(PLIC_CLAIM, irq);
    }
}

void riscv_start(void)
{
    memory_init();
    reg_write(PLIC_PRIORITY(MCUD_UART_IRQ), 1u);
    reg_write(PLIC_THRESHOLD, 0);
    __asm__ volatile("csrs mie, %0" ::"r"(MIE_EXTERNAL) : "memory");
    core_interrupts_on();
    hal_exit(main());
}
