/* Start of a bare RISC-V hart; the image begins here. */
    .option arch, +zicsr

    .section .vectors, "ax"
    .global reset_handler
    .type reset_handler, @function
reset_handler:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    csrr t0, mhartid
    bnez t0, others
    la sp, mcud_stack_top
    li t0, 0x2200               /* mstatus.FS and VS = initial: floating point and vectors on; 0 without them */
    csrs mstatus, t0
    la t0, trap_entry
    csrw mtvec, t0
    call riscv_start
    .weak hart_reset
others:                         /* hart_reset is 0 unless harts.c is linked, for programs on several harts */
    la t0, hart_reset
    beqz t0, park
    jr t0
park:
    wfi
    j park

/* Saves the registers that C may change, calls riscv_trap(mcause, mepc), and returns to the interrupted code. The
 * handler uses no floating point and no vectors: it only moves bytes. */
    .section .text.trap_entry, "ax"
    .balign 4
    .type trap_entry, @function
trap_entry:
    addi sp, sp, -64
    sw ra, 0(sp)
    sw t0, 4(sp)
    sw t1, 8(sp)
    sw t2, 12(sp)
    sw a0, 16(sp)
    sw a1, 20(sp)
    sw a2, 24(sp)
    sw a3, 28(sp)
    sw a4, 32(sp)
    sw a5, 36(sp)
    sw a6, 40(sp)
    sw a7, 44(sp)
    sw t3, 48(sp)
    sw t4, 52(sp)
    sw t5, 56(sp)
    sw t6, 60(sp)
    csrr a0, mcause
    csrr a1, mepc
    call riscv_trap
    lw ra, 0(sp)
    lw t0, 4(sp)
    lw t1, 8(sp)
    lw t2, 12(sp)
    lw a0, 16(sp)
    lw a1, 20(sp)
    lw a2, 24(sp)
    lw a3, 28(sp)
    lw a4, 32(sp)
    lw a5, 36(sp)
    lw a6, 40(sp)
    lw a7, 44(sp)
    lw t3, 48(sp)
    lw t4, 52(sp)
    lw t5, 56(sp)
    lw t6, 60(sp)
    addi sp, sp, 64
    mret
