/* What the boot ROM of an ESP32-C3 (revision 0.3 or later) or C6 starts without a boot loader in flash: "direct boot".
 *
 * If the flash begins with this number twice, the ROM maps 4 MiB of it to the addresses for code and for data. Then it
 * jumps to the word after the numbers. The image needs no other entry.
 */
    .option arch, +zicsr

#define DIRECT_BOOT 0xAEDB041D
#define MSTATUS_MIE 8

    .section .boot, "ax"
    .word DIRECT_BOOT, DIRECT_BOOT
    j reset_handler

    .section .text.reset_handler, "ax"
    .global reset_handler
    .type reset_handler, @function
reset_handler:
    csrci mstatus, MSTATUS_MIE  /* the ROM's handlers are not ours */
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, mcud_stack_top
    la t0, mcud_vectors
    ori t0, t0, 1               /* the core has no mode but the vectored one */
    csrw mtvec, t0
    call direct_boot_start

/* No interrupt is used: each of the 32 entries is a fault, which resets the chip. */
    .section .vectors, "ax"
    .global mcud_vectors
    .option push
    .option norvc
    .option norelax
    .balign 256
mcud_vectors:
    .rept 32
    j fault
    .endr
    .option pop

    .section .text.fault, "ax"
fault:
    la sp, mcud_stack_top
    call direct_boot_fault
