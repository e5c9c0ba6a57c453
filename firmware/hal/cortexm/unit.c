/* A second Cortex-M core: it sleeps until the first one posts a step for compute unit 1, or a call for core 1, which
 * is posted as a step too. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_cores.h"
#include "mcud_hal.h"
#include "mcud_unit.h"

void cortexm_unit_main(void);
void cortexm_unit_fault(const uint32_t *frame);

typedef void handler(void);

/* The second core takes no interrupts: a pending one only ends its sleep. */
struct unit_vector_table {
    uint8_t *stack;
    handler *core[15];
};

static uint8_t stack[MCUD_UNIT1_STACK_BYTES] __attribute__((aligned(8), section(MCUD_UNIT1_STACK_SECTION)));

static mcud_mailbox mailbox;
static uint8_t released;

static struct {
    mcud_core_work *work;
    void *argument;
} call;

__attribute__((naked)) static void unit_reset_handler(void)
{
    __asm__ volatile("cpsid i\n\t"
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
                     "ldr r0, =0xE000ED88\n\t" /* CPACR, as in reset.S */
                     "ldr r1, [r0]\n\t"
                     "orr r1, r1, #0xF00000\n\t"
                     "str r1, [r0]\n\t"
                     "dsb\n\t"
                     "isb\n\t"
#endif
                     "bl cortexm_unit_main");
}

__attribute__((naked)) static void unit_fault_handler(void)
{
    __asm__ volatile("mrs r0, msp\n\t" /* the stacked frame; the stack may have overflowed */
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
                     "movs r1, #0\n\t"
                     "msr msplim, r1\n\t"
#endif
                     "ldr r1, =%c0\n\t"
                     "mov sp, r1\n\t"
                     "bl cortexm_unit_fault"
                     :
                     : "i"(stack + sizeof stack));
}

static const struct unit_vector_table vectors __attribute__((aligned(UNIT_VECTORS_ALIGNMENT))) = {
    .stack = stack + sizeof stack,
    .core = {[0] = unit_reset_handler,
             [1] = unit_fault_handler,
             [2] = unit_fault_handler,
             [3] = unit_fault_handler,
             [4] = unit_fault_handler,
             [5] = unit_fault_handler,
             [6] = unit_fault_handler},
};

void cortexm_unit_main(void)
{
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    __asm__ volatile("msr msplim, %0" ::"r"(stack));
#endif
    unit_init();
    for (;;) {
        if (mcud_mailbox_serve(&mailbox)) {
            mcud_core_wake();
        } else {
            unit_sleep();
        }
    }
}

void cortexm_unit_fault(const uint32_t *frame)
{
    if (MCUD_EMULATED) {
        report_text("unit 1: ");
        cortexm_report_fault(frame, stack, stack + sizeof stack);
    }
    hal_exit(EXIT_FAULT);
}

static void post(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    mcud_mailbox_post(&mailbox, op, first_row, end_row);
    __asm__ volatile("dsb" ::: "memory");
    if (!released) {
        released = 1;
        unit_release(&vectors);
    }
    unit_wake();
}

void mcud_unit_run(uint32_t unit, const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)unit; /* only one exists beside the caller's */
    post(op, first_row, end_row);
    while (!mcud_mailbox_done(&mailbox)) {
        mcud_core_wait();
    }
}

static void run_call(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)op;
    (void)first_row;
    (void)end_row;
    call.work(call.argument);
}

void mcud_core_start(uint32_t core, mcud_core_work *work, void *argument)
{
    static const mcud_op step = {.kernel = run_call};
    (void)core;
    call.work = work;
    call.argument = argument;
    post(&step, 0, 1);
}

int32_t mcud_core_is_busy(uint32_t core)
{
    (void)core;
    return !mcud_mailbox_done(&mailbox);
}

void mcud_core_wake(void)
{
    __asm__ volatile("dsb\n\tsev" ::: "memory");
}

void mcud_core_wait(void)
{
    __asm__ volatile("wfe" ::: "memory");
}
