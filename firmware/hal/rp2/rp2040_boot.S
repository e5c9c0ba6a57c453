/* Second stage of the RP2040's boot: makes the serial flash readable as memory, then starts the program.
 *
 * The boot ROM copies the first 256 bytes of flash to the end of SRAM and runs them there. Their last word must be the
 * CRC-32 of the others (tests/chips computes it). For flash chips like the Pico's W25Q16JV: quad reads (EBh) whose
 * command is left out (continuous read), at half of the core's clock.
 */

/* RP2040 Datasheet: 4.10.13 */
#define XIP_SSI 0x18000000
#define XIP_SSI_CTRLR0 0x00
#define XIP_SSI_CTRLR0_TMOD(n) ((n) << 8)
#define XIP_SSI_CTRLR0_DFS_32(n) ((n) << 16)
#define XIP_SSI_CTRLR0_SPI_FRF(n) ((n) << 21)
#define XIP_SSI_CTRLR1 0x04
#define XIP_SSI_SSIENR 0x08
#define XIP_SSI_SER 0x10
#define XIP_SSI_BAUDR 0x14
#define XIP_SSI_SR 0x28
#define XIP_SSI_SR_BUSY (1 << 0)
#define XIP_SSI_SR_TFE (1 << 2)
#define XIP_SSI_DR0 0x60
#define XIP_SSI_RX_SAMPLE_DLY 0xF0
#define XIP_SSI_SPI_CTRLR0 0xF4
#define XIP_SSI_SPI_CTRLR0_TRANS_TYPE(n) ((n) << 0)
#define XIP_SSI_SPI_CTRLR0_ADDR_L(n) ((n) << 2)
#define XIP_SSI_SPI_CTRLR0_INST_L(n) ((n) << 8)
#define XIP_SSI_SPI_CTRLR0_WAIT_CYCLES(n) ((n) << 11)
#define XIP_SSI_SPI_CTRLR0_XIP_CMD(n) ((n) << 24)

/* RP2040 Datasheet: 2.19.6.4 */
#define PADS_QSPI 0x40020000
#define PADS_QSPI_GPIO_QSPI_SCLK 0x04
#define PADS_QSPI_GPIO_QSPI_SCLK_SLEWFAST (1 << 0)
#define PADS_QSPI_GPIO_QSPI_SCLK_DRIVE(n) ((n) << 4)
#define PADS_QSPI_GPIO_QSPI_SD0 0x08
#define PADS_QSPI_GPIO_QSPI_SD0_SCHMITT (1 << 1)
#define PADS_QSPI_GPIO_QSPI_SD1 0x0C
#define PADS_QSPI_GPIO_QSPI_SD2 0x10
#define PADS_QSPI_GPIO_QSPI_SD3 0x14

#define SCB_VTOR 0xE000ED08

/* Commands of the flash, and its status bits */
#define WRITE_STATUS 0x01
#define READ_STATUS_1 0x05
#define WRITE_ENABLE 0x06
#define READ_STATUS_2 0x35
#define READ_QUAD 0xEB
#define STATUS_1_BUSY 0x01
#define STATUS_2_QUAD 0x02
#define CONTINUOUS 0xA0

#define ONE_BIT_BYTES XIP_SSI_CTRLR0_DFS_32(7)
#define QUAD_WORDS (XIP_SSI_CTRLR0_SPI_FRF(2) | XIP_SSI_CTRLR0_DFS_32(31) | XIP_SSI_CTRLR0_TMOD(3))
/* 24 bits of address and 8 that say "continuous", in units of four; then four clocks of silence. */
#define QUAD_ADDRESS (XIP_SSI_SPI_CTRLR0_ADDR_L(8) | XIP_SSI_SPI_CTRLR0_WAIT_CYCLES(4))
#define WITH_COMMAND (QUAD_ADDRESS | XIP_SSI_SPI_CTRLR0_INST_L(2) | XIP_SSI_SPI_CTRLR0_TRANS_TYPE(1))
#define WITHOUT_COMMAND (QUAD_ADDRESS | XIP_SSI_SPI_CTRLR0_XIP_CMD(CONTINUOUS) | XIP_SSI_SPI_CTRLR0_TRANS_TYPE(2))

#define CRC 0x890E40F3

    .syntax unified
    .thumb
    .section .boot, "ax", %progbits

#define DRIVE_8_MA 2

/* r4: the SSI, r5: its registers from RX_SAMPLE_DLY on, r6: 0, r7: 1 */
boot:
    ldr r4, =XIP_SSI
    movs r5, r4
    adds r5, #XIP_SSI_RX_SAMPLE_DLY
    movs r6, #0
    movs r7, #1

    /* A clock of 66 MHz needs a stronger driver, fast edges, and data inputs without Schmitt triggers, which delay. The
     * reset values of the pads differ. */
    ldr r0, =PADS_QSPI
    movs r1, #(PADS_QSPI_GPIO_QSPI_SCLK_DRIVE(DRIVE_8_MA) | PADS_QSPI_GPIO_QSPI_SCLK_SLEWFAST)
    str r1, [r0, #PADS_QSPI_GPIO_QSPI_SCLK]
    ldr r1, [r0, #PADS_QSPI_GPIO_QSPI_SD0]
    movs r2, #PADS_QSPI_GPIO_QSPI_SD0_SCHMITT
    bics r1, r2
    str r1, [r0, #PADS_QSPI_GPIO_QSPI_SD0]
    str r1, [r0, #PADS_QSPI_GPIO_QSPI_SD1]
    str r1, [r0, #PADS_QSPI_GPIO_QSPI_SD2]
    str r1, [r0, #PADS_QSPI_GPIO_QSPI_SD3]

    str r6, [r4, #XIP_SSI_SSIENR]
    movs r0, #2
    str r0, [r4, #XIP_SSI_BAUDR]
    str r7, [r5]
    ldr r0, =ONE_BIT_BYTES
    str r0, [r4, #XIP_SSI_CTRLR0]
    str r7, [r4, #XIP_SSI_SER]
    str r7, [r4, #XIP_SSI_SSIENR]

    /* Enables the four data pins, if the factory has not. */
    movs r0, #READ_STATUS_2
    bl read_status
    movs r1, #STATUS_2_QUAD
    tst r0, r1
    bne read_quad
    movs r0, #WRITE_ENABLE
    str r0, [r4, #XIP_SSI_DR0]
    bl finish
    ldr r0, [r4, #XIP_SSI_DR0]
    movs r0, #WRITE_STATUS
    str r0, [r4, #XIP_SSI_DR0]
    str r6, [r4, #XIP_SSI_DR0]
    str r1, [r4, #XIP_SSI_DR0]
    bl finish
    ldr r0, [r4, #XIP_SSI_DR0]
    ldr r0, [r4, #XIP_SSI_DR0]
    ldr r0, [r4, #XIP_SSI_DR0]
written:
    movs r0, #READ_STATUS_1
    bl read_status
    tst r0, r7 /* STATUS_1_BUSY */
    bne written

    /* One read with its command, after which the flash expects addresses only. */
read_quad:
    str r6, [r4, #XIP_SSI_SSIENR]
    ldr r0, =QUAD_WORDS
    str r0, [r4, #XIP_SSI_CTRLR0]
    str r6, [r4, #XIP_SSI_CTRLR1]
    ldr r0, =WITH_COMMAND
    str r0, [r5, #(XIP_SSI_SPI_CTRLR0 - XIP_SSI_RX_SAMPLE_DLY)]
    str r7, [r4, #XIP_SSI_SSIENR]
    movs r0, #READ_QUAD
    str r0, [r4, #XIP_SSI_DR0]
    movs r0, #CONTINUOUS
    str r0, [r4, #XIP_SSI_DR0]
    bl finish
    str r6, [r4, #XIP_SSI_SSIENR]
    ldr r0, =WITHOUT_COMMAND
    str r0, [r5, #(XIP_SSI_SPI_CTRLR0 - XIP_SSI_RX_SAMPLE_DLY)]
    str r7, [r4, #XIP_SSI_SSIENR]

    /* As the core itself would start from a vector table. */
    ldr r0, =mcud_vectors
    ldr r1, =SCB_VTOR
    str r0, [r1]
    ldmia r0!, {r1, r2}
    msr msp, r1
    bx r2

/* Returns in r0 the status register that command r0 reads. */
read_status:
    mov r8, lr
    str r0, [r4, #XIP_SSI_DR0]
    str r0, [r4, #XIP_SSI_DR0]
    bl finish
    ldr r0, [r4, #XIP_SSI_DR0]
    ldr r0, [r4, #XIP_SSI_DR0]
    bx r8

/* Waits until the SSI has sent and received all; changes r2 and r3. */
finish:
    movs r3, #(XIP_SSI_SR_TFE | XIP_SSI_SR_BUSY)
finishing:
    ldr r2, [r4, #XIP_SSI_SR]
    ands r2, r3
    cmp r2, #XIP_SSI_SR_TFE
    bne finishing
    bx lr

    .ltorg
    .org boot + 252
    .word CRC
