/* PSRAM with the commands of an APS6404L, at the second chip select of the RP2350's memory interface: its pin and its times
 * are facts of the board file. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "registers.h"
#include "rp2.h"

/* RP2350 Datasheet: 2.2.2, 4.4.5, 12.14.6 */
#define XIP_CTRL 0x400C8000u
#define XIP_CTRL_CTRL 0x00u
#define XIP_CTRL_CTRL_WRITABLE_M1 (1u << 11)
#define XIP_QMI 0x400D0000u
#define XIP_QMI_DIRECT_CSR 0x00u
#define XIP_QMI_DIRECT_CSR_EN (1u << 0)
#define XIP_QMI_DIRECT_CSR_BUSY (1u << 1)
#define XIP_QMI_DIRECT_CSR_ASSERT_CS1N (1u << 3)
#define XIP_QMI_DIRECT_CSR_TXEMPTY (1u << 11)
#define XIP_QMI_DIRECT_CSR_CLKDIV(n) ((n) << 22)
#define XIP_QMI_DIRECT_TX 0x04u
#define XIP_QMI_DIRECT_TX_IWIDTH(n) ((n) << 16)
#define XIP_QMI_DIRECT_TX_OE (1u << 19)
#define XIP_QMI_DIRECT_RX 0x08u
#define XIP_QMI_M1_TIMING 0x20u
#define XIP_QMI_M1_TIMING_CLKDIV(n) ((n) << 0)
#define XIP_QMI_M1_TIMING_RXDELAY(n) ((n) << 8)
#define XIP_QMI_M1_TIMING_MIN_DESELECT(n) ((n) << 12)
#define XIP_QMI_M1_TIMING_MAX_SELECT(n) ((n) << 17)
#define XIP_QMI_M1_TIMING_PAGEBREAK(n) ((n) << 28)
#define XIP_QMI_M1_TIMING_COOLDOWN(n) ((n) << 30)
#define XIP_QMI_M1_RFMT 0x24u
#define XIP_QMI_M1_RFMT_PREFIX_WIDTH(n) ((n) << 0)
#define XIP_QMI_M1_RFMT_ADDR_WIDTH(n) ((n) << 2)
#define XIP_QMI_M1_RFMT_DUMMY_WIDTH(n) ((n) << 6)
#define XIP_QMI_M1_RFMT_DATA_WIDTH(n) ((n) << 8)
#define XIP_QMI_M1_RFMT_PREFIX_LEN (1u << 12)
#define XIP_QMI_M1_RFMT_DUMMY_LEN(n) ((n) << 16)
#define XIP_QMI_M1_RCMD 0x28u
#define XIP_QMI_M1_RCMD_PREFIX(n) ((n) << 0)
#define XIP_QMI_M1_WFMT 0x2Cu
#define XIP_QMI_M1_WCMD 0x30u
#define XIP_QMI_M1_WCMD_PREFIX(n) ((n) << 0)

/* RP2350 Datasheet: 9.4, 9.11 */
#define IO_BANK0_GPIO0_CTRL 0x04u
#define IO_BANK0_GPIO0_CTRL_FUNCSEL(n) ((n) << 0)
#define PADS_BANK0_GPIO0 0x04u
#define PADS_BANK0_GPIO0_SCHMITT (1u << 1)
#define PADS_BANK0_GPIO0_DRIVE(n) ((n) << 4)
#define PADS_BANK0_GPIO0_IE (1u << 6)
#define CONTROL_BYTES 8u
#define PAD_BYTES 4u
#define SELECT_1 9u

/* APS6404L-3SQR, data sheet: 8, commands */
#define LEAVE_QUAD 0xF5u
#define RESET_ENABLE 0x66u
#define RESET 0x99u
#define READ_ID 0x9Fu
#define ENTER_QUAD 0x35u
#define QUAD_READ 0xEBu
#define QUAD_WRITE 0x38u
#define KNOWN_GOOD_DIE 0x5Du
#define ID_BYTES 6u /* with the command and its address; the last byte marks a good die */

#define SERIAL_DIVIDER 10u /* a read of the ID takes at most 33 MHz */
#define ON_FOUR_PINS 2u
#define WAIT_OF_SIX_CLOCKS 6u /* 24 bits on four pins */
#define PAGES_OF_1_KIB 2u
#define UNCACHED (MCUD_PSRAM_ORIGIN + 0x04000000u) /* the same memory beside the cache */

#if MCUD_CLOCK_HZ > 7u * MCUD_PSRAM_MOST_HZ
#error "most_hz of the board's psram is less than a seventh of the core's clock, by which its reads can be delayed"
#endif

/* While the interface talks to the PSRAM, the flash cannot be read. So this code is in RAM, calls only functions in
 * RAM, and reads no constants of the flash. */
#define IN_RAM __attribute__((section(".ramcode"), noinline))

IN_RAM static uint32_t exchange(uint32_t word)
{
    reg_write(XIP_QMI + XIP_QMI_DIRECT_TX, word);
    while ((reg_read(XIP_QMI + XIP_QMI_DIRECT_CSR) & XIP_QMI_DIRECT_CSR_TXEMPTY) == 0u) {
    }
    while ((reg_read(XIP_QMI + XIP_QMI_DIRECT_CSR) & XIP_QMI_DIRECT_CSR_BUSY) != 0u) {
    }
    return reg_read(XIP_QMI + XIP_QMI_DIRECT_RX);
}

IN_RAM static uint32_t command(uint32_t word, uint32_t bytes)
{
    reg_set(XIP_QMI + XIP_QMI_DIRECT_CSR, XIP_QMI_DIRECT_CSR_ASSERT_CS1N);
    uint32_t last = exchange(word);
    for (uint32_t i = 1; i < bytes; i++) {
        last = exchange(0u);
    }
    reg_change(XIP_QMI + XIP_QMI_DIRECT_CSR, XIP_QMI_DIRECT_CSR_ASSERT_CS1N, 0u);
    return last;
}

/* Resets the memory from any state and switches it to four pins; 0 if no memory answers. */
IN_RAM static int32_t switch_to_four_pins(void)
{
    reg_write(XIP_QMI + XIP_QMI_DIRECT_CSR, XIP_QMI_DIRECT_CSR_CLKDIV(SERIAL_DIVIDER) | XIP_QMI_DIRECT_CSR_EN);
    while ((reg_read(XIP_QMI + XIP_QMI_DIRECT_CSR) & XIP_QMI_DIRECT_CSR_BUSY) != 0u) { /* the last read of the flash */
    }
    command(XIP_QMI_DIRECT_TX_OE | XIP_QMI_DIRECT_TX_IWIDTH(ON_FOUR_PINS) | LEAVE_QUAD, 1u);
    command(RESET_ENABLE, 1u);
    command(RESET, 1u);
    const int32_t is_good = command(READ_ID, ID_BYTES) == KNOWN_GOOD_DIE;
    if (is_good) {
        command(ENTER_QUAD, 1u);
    }
    reg_write(XIP_QMI + XIP_QMI_DIRECT_CSR, 0u);
    return is_good;
}

/* The format of reads and writes: all on four pins. */
static const uint32_t format = XIP_QMI_M1_RFMT_PREFIX_WIDTH(ON_FOUR_PINS) | XIP_QMI_M1_RFMT_ADDR_WIDTH(ON_FOUR_PINS)
                               | XIP_QMI_M1_RFMT_DUMMY_WIDTH(ON_FOUR_PINS) | XIP_QMI_M1_RFMT_DATA_WIDTH(ON_FOUR_PINS)
                               | XIP_QMI_M1_RFMT_PREFIX_LEN;

static void describe(void)
{
    const uint32_t divider = (MCUD_CLOCK_HZ + MCUD_PSRAM_MOST_HZ - 1u) / MCUD_PSRAM_MOST_HZ;
    const uint32_t mhz = MCUD_CLOCK_HZ / 1000000u;
    const uint32_t select = MCUD_PSRAM_SELECT_NS * mhz / 64000u; /* times of 64 clocks */
    /* Half a clock of the memory is added to the clocks of this pause. */
    const uint32_t pause = (MCUD_PSRAM_DESELECT_NS * mhz + 999u) / 1000u;
    const uint32_t half = (divider + 1u) / 2u;
    const uint32_t deselect = pause > half ? pause - half : 0u;
    reg_write(XIP_QMI + XIP_QMI_M1_TIMING,
              XIP_QMI_M1_TIMING_CLKDIV(divider) | XIP_QMI_M1_TIMING_RXDELAY(divider)
                  | XIP_QMI_M1_TIMING_MIN_DESELECT(deselect) | XIP_QMI_M1_TIMING_MAX_SELECT(select)
                  | XIP_QMI_M1_TIMING_PAGEBREAK(PAGES_OF_1_KIB) | XIP_QMI_M1_TIMING_COOLDOWN(1u));
    reg_write(XIP_QMI + XIP_QMI_M1_RFMT, format | XIP_QMI_M1_RFMT_DUMMY_LEN(WAIT_OF_SIX_CLOCKS));
    reg_write(XIP_QMI + XIP_QMI_M1_RCMD, XIP_QMI_M1_RCMD_PREFIX(QUAD_READ));
    reg_write(XIP_QMI + XIP_QMI_M1_WFMT, format);
    reg_write(XIP_QMI + XIP_QMI_M1_WCMD, XIP_QMI_M1_WCMD_PREFIX(QUAD_WRITE));
}

void rp2_start_psram(void)
{
    rp2_release(rp2_chip.pins_reset);
    reg_write(rp2_chip.io + IO_BANK0_GPIO0_CTRL + CONTROL_BYTES * MCUD_PSRAM_SELECT_PIN,
              IO_BANK0_GPIO0_CTRL_FUNCSEL(SELECT_1));
    reg_write(rp2_chip.pads + PADS_BANK0_GPIO0 + PAD_BYTES * MCUD_PSRAM_SELECT_PIN, /* its isolation ends */
              PADS_BANK0_GPIO0_SCHMITT | PADS_BANK0_GPIO0_DRIVE(1u) | PADS_BANK0_GPIO0_IE);
    describe();
    if (!switch_to_four_pins()) {
        return;
    }
    reg_set(XIP_CTRL + XIP_CTRL_CTRL, XIP_CTRL_CTRL_WRITABLE_M1);
    if (!memory_answers(UNCACHED, 1u << MCUD_PSRAM_LOG2_BYTES)) {
        reg_change(XIP_CTRL + XIP_CTRL_CTRL, XIP_CTRL_CTRL_WRITABLE_M1, 0u);
    }
}
