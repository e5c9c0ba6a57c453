/* The data that the i.MX RT1062's boot ROM reads from a Teensy 4.1's flash, and the first instructions after it.
 *
 * FlexSPI configuration block: how to read the flash. Image vector table and boot data: where the program starts. They
 * are at fixed offsets from the origin of the flash; all other bytes are 0.
 */

/* IMXRT1060RM: IOMUX Controller */
#define IOMUXC_GPR 0x400AC000
#define IOMUXC_GPR_GPR14 0x38
#define IOMUXC_GPR_GPR14_CM7_CFGITCMSZ(n) ((n) << 16)
#define IOMUXC_GPR_GPR14_CM7_CFGDTCMSZ(n) ((n) << 20)
#define IOMUXC_GPR_GPR16 0x40
#define IOMUXC_GPR_GPR16_FLEXRAM_BANK_CFG_SEL (1 << 2)
#define IOMUXC_GPR_GPR17 0x44

#define BANKS 0xAAAAAAFF   /* of 32 KiB: four for code (3), twelve for data (2) */
#define SIZE_128_KIB 8     /* of the memory for code */
#define SIZE_512_KIB 10    /* of that for data, the next power of two */

/* IMXRT1060RM: System Boot, offsets in the configuration block */
#define FLEXSPI_VERSION 0x004
#define FLEXSPI_SAMPLING 0x00C
#define FLEXSPI_DEVICE 0x044
#define FLEXSPI_SIZE_A1 0x050
#define FLEXSPI_SEQUENCE_READ 0x080
#define FLEXSPI_PAGE_BYTES 0x1C0
#define FLEXSPI_SECTOR_BYTES 0x1C4

#define CONFIGURATION_TAG 0x42464346 /* "FCFB" */
#define CONFIGURATION_VERSION 0x56010000
#define LOOPBACK_FROM_PAD 1
#define SERIAL_NOR 1
#define FOUR_PADS 4
#define CLOCK_133_MHZ 8
#define CHIP_BYTES 0x800000

/* IMXRT1060RM: FlexSPI, a step of a sequence: operation, log2 of its pads, operand */
#define STEP(operation, pads, operand) ((operation) << 10 | (pads) << 8 | (operand))
#define COMMAND 1
#define ADDRESS 2
#define MODE_BITS 7
#define READ 9
#define SILENCE 12
#define ONE_PAD 0
#define QUAD 2
#define READ_QUAD 0xEB

/* IMXRT1060RM: System Boot */
#define IVT 0x1000
#define IVT_HEADER 0x412000D1 /* tag, 32 bytes, version 4.1 */

    .syntax unified
    .thumb
    .section .boot, "ax", %progbits

boot:
    .word CONFIGURATION_TAG
    .org boot + FLEXSPI_VERSION
    .word CONFIGURATION_VERSION
    .org boot + FLEXSPI_SAMPLING
    .byte LOOPBACK_FROM_PAD, 3, 3, 0 /* clocks of hold and set-up of the chip select */
    .org boot + FLEXSPI_DEVICE
    .byte SERIAL_NOR, FOUR_PADS, CLOCK_133_MHZ, 0
    .org boot + FLEXSPI_SIZE_A1
    .word CHIP_BYTES
    .org boot + FLEXSPI_SEQUENCE_READ
    .hword STEP(COMMAND, ONE_PAD, READ_QUAD), STEP(ADDRESS, QUAD, 24)
    .hword STEP(MODE_BITS, QUAD, 0), STEP(SILENCE, QUAD, 4) /* 0: the next read has its command again */
    .hword STEP(READ, QUAD, 4), 0
    .org boot + FLEXSPI_PAGE_BYTES
    .word 256
    .org boot + FLEXSPI_SECTOR_BYTES
    .word 4096

    .org boot + IVT
vector_table:
    .word IVT_HEADER, entry, 0, 0 /* no device configuration data */
    .word boot_data, vector_table, 0, 0
boot_data:
    .word boot, CHIP_BYTES, 0

/* The ROM reads an even entry as the address of a vector table. */
    .balign 8
entry:
    .word mcud_stack_top, imxrt1062_reset

/* The memory of the stack exists only after FlexRAM has been divided. */
    .thumb_func
    .type imxrt1062_reset, %function
imxrt1062_reset:
    cpsid i
    ldr r0, =IOMUXC_GPR
    ldr r1, =BANKS
    str r1, [r0, #IOMUXC_GPR_GPR17]
    ldr r1, [r0, #IOMUXC_GPR_GPR16]
    orr r1, r1, #IOMUXC_GPR_GPR16_FLEXRAM_BANK_CFG_SEL
    str r1, [r0, #IOMUXC_GPR_GPR16]
    ldr r1, =(IOMUXC_GPR_GPR14_CM7_CFGITCMSZ(SIZE_128_KIB) | IOMUXC_GPR_GPR14_CM7_CFGDTCMSZ(SIZE_512_KIB))
    str r1, [r0, #IOMUXC_GPR_GPR14]
    dsb
    isb
    cpsie i
    ldr r0, =reset_handler
    bx r0
    .ltorg
