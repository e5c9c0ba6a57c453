/* Reset and fault entry of every Cortex-M: the set-up before C code can run. */
    .syntax unified
    .thumb

    .section .text.reset_handler, "ax", %progbits
    .global reset_handler
    .thumb_func
    .type reset_handler, %function
reset_handler:
    ldr r0, =mcud_stack_top     /* a debugger may have started us without loading the stack pointer */
    mov sp, r0
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    ldr r0, =0xE000ED88         /* CPACR: full access to CP10 and CP11, before any instruction that needs it */
    ldr r1, [r0]
    orr r1, r1, #0xF00000
    str r1, [r0]
    dsb
    isb
#endif
    bl cortexm_start

    .section .text.fault_handler, "ax", %progbits
    .global fault_handler
    .thumb_func
    .type fault_handler, %function
fault_handler:
    mrs r0, msp                 /* the stacked frame; the stack may have overflowed */
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    movs r1, #0
    msr msplim, r1
#endif
    ldr r1, =mcud_stack_top
    mov sp, r1
    bl cortexm_fault
