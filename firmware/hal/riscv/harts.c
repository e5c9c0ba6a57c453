/* Harts 1 and up run calls that hart 0 posts; they sleep in between. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_cores.h"
#include "registers.h"

__asm__(".option arch, +zicsr");

#define CLINT_MSIP(hart) (0x02000000u + 4u * (hart))

#define MSTATUS_MIE 8u
#define MSTATUS_FS_VS_INITIAL 0x2200u /* floating point and vectors on */
#define MIE_SOFTWARE 8u

typedef struct {
    mcud_core_work *work;
    void *argument;
    uint32_t busy;
} hart_box;

void hart_reset(void);
void hart_main(uint32_t hart);
void hart_trap(uint32_t cause, uint32_t address, uint32_t hart);
void riscv_trap(uint32_t cause, uint32_t address);

static hart_box boxes[MCUD_CORES];

/* Not in .bss: harts use their stacks before hart 0 has cleared it. */
static uint8_t stacks[MCUD_CORES - 1][MCUD_CORE_STACK_BYTES]
    __attribute__((aligned(16), section(".noinit.hart_stacks")));

/* For faults only, since a hart takes no interrupts; never returns. It resets the stack pointer, since the stack may
 * have overflowed. */
__attribute__((naked, aligned(4))) static void hart_trap_entry(void)
{
    __asm__ volatile("csrr a0, mcause\n\t"
                     "csrr a1, mepc\n\t"
                     "csrr a2, mhartid\n\t"
                     "li t0, %1\n\t"
                     "mul t0, t0, a2\n\t"
                     "la sp, %0\n\t"
                     "add sp, sp, t0\n\t"
                     "call hart_trap"
                     :
                     : "i"(stacks), "i"(MCUD_CORE_STACK_BYTES));
}

/* Entry of the other harts, from reset.S, which has set the global pointer. */
__attribute__((naked)) void hart_reset(void)
{
    __asm__ volatile("csrr a0, mhartid\n\t"
                     "li t0, %3\n\t"
                     "mul t0, t0, a0\n\t"
                     "la sp, %0\n\t"
                     "add sp, sp, t0\n\t"
                     "li t0, %1\n\t"
                     "csrs mstatus, t0\n\t"
                     "la t0, %2\n\t"
                     "csrw mtvec, t0\n\t"
                     "call hart_main"
                     :
                     : "i"(stacks), "i"(MSTATUS_FS_VS_INITIAL), "i"(hart_trap_entry), "i"(MCUD_CORE_STACK_BYTES));
}

void hart_trap(uint32_t cause, uint32_t address, uint32_t hart)
{
    const char number[2] = {(char)('0' + hart), '\0'};
    report_text("hart ");
    report_text(number);
    report_text(": ");
    riscv_trap(cause, address);
}

/* Orders accesses to memory and to the device registers that signal. */
static void fence(void)
{
    __asm__ volatile("fence" ::: "memory");
}

void hart_main(uint32_t hart)
{
    hart_box *const box = &boxes[hart];
    for (;;) {
        __asm__ volatile("csrs mie, %0" ::"r"(MIE_SOFTWARE) : "memory");
        while (reg_read(CLINT_MSIP(hart)) == 0u) {
            core_sleep();
        }
        fence();
        box->work(box->argument);
        reg_write(CLINT_MSIP(hart), 0);
        fence();
        __atomic_store_n(&box->busy, 0u, __ATOMIC_RELEASE);
    }
}

void mcud_core_start(uint32_t core, mcud_core_work *work, void *argument)
{
    boxes[core].work = work;
    boxes[core].argument = argument;
    __atomic_store_n(&boxes[core].busy, 1u, __ATOMIC_RELAXED);
    fence();
    reg_write(CLINT_MSIP(core), 1u);
}

int32_t mcud_core_is_busy(uint32_t core)
{
    return __atomic_load_n(&boxes[core].busy, __ATOMIC_ACQUIRE) != 0u;
}

void mcud_core_wake(void)
{
}

/* A waiting core spins: its software interrupt is pending but not enabled to trap, so wfi returns at once. It executes
 * wfi nevertheless, because the emulator then continues with the next hart. */
void mcud_core_wait(void)
{
    uint32_t status;
    __asm__ volatile("csrrc %0, mstatus, %1" : "=r"(status) : "r"(MSTATUS_MIE) : "memory");
    /* Hart 0's own interrupt; those of other harts are pending until their calls return. It stays pending: only this
     * function enables it. */
    reg_write(CLINT_MSIP(0u), 1u);
    __asm__ volatile("csrs mie, %0" ::"r"(MIE_SOFTWARE) : "memory");
    core_sleep();
    __asm__ volatile("csrc mie, %0" ::"r"(MIE_SOFTWARE) : "memory");
    __asm__ volatile("csrs mstatus, %0" ::"r"(status & MSTATUS_MIE) : "memory");
}
