/* Runs command streams on an Ethos-U55 or U65 of the chip, without an operating system.
 *
 * Registers: Arm, Ethos-U55 NPU Technical Reference Manual (102420). The board states MCUD_NPU_BASE and MCUD_NPU_MACS.
 * With MCUD_NPU_IRQ the core sleeps until the unit's interrupt. Otherwise it reads the status until the unit has
 * finished, MCUD_NPU_PATIENCE times at most. A sleeping core does not notice a unit that hangs: that needs a watchdog.
 * With MCUD_NPU_CACHED the core's data cache covers the words and the regions after the first one, which has constants.
 *
 * A fault resets the unit, so that it no longer accesses memory; the next stream can run.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcud_npu.h"
#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_cache.h"
#include "registers.h"

#ifndef MCUD_NPU_PATIENCE
#define MCUD_NPU_PATIENCE 100000000u
#endif
#ifndef MCUD_NPU_PRODUCT
#define MCUD_NPU_PRODUCT 0u /* 0 is the Ethos-U55, 1 the Ethos-U65 */
#endif
#ifndef MCUD_NPU_ACCESS
#define MCUD_NPU_ACCESS 1u /* privileged; + 2 for memory that is not secure */
#endif

/* The unit's port to a memory, by its counter of outstanding transfers: 0 and 1 belong to the port that reads and
 * writes, 2 and 3 to the one that only reads, which an Ethos-U55 has for flash. The words of a single step are in RAM,
 * those of joined steps in flash beside the constants. */
#ifndef MCUD_NPU_STREAM_PORT
#define MCUD_NPU_STREAM_PORT 1u
#endif
#ifndef MCUD_NPU_CONSTANT_PORT
#define MCUD_NPU_CONSTANT_PORT 3u
#endif
#ifndef MCUD_NPU_ARENA_PORT
#define MCUD_NPU_ARENA_PORT 0u
#endif

#define UNIT_STATUS 0x004u
#define UNIT_CMD 0x008u
#define UNIT_RESET 0x00Cu
#define UNIT_QBASE 0x010u
#define UNIT_QCONFIG 0x01Cu
#define UNIT_QSIZE 0x020u
#define UNIT_PROT 0x024u
#define UNIT_CONFIG 0x028u
#define UNIT_REGIONCFG 0x03Cu
#define UNIT_AXI_LIMIT0 0x040u
#define UNIT_BASEP 0x080u

#define STATUS_INTERRUPT (1u << 1)
#define STATUS_RESETTING (1u << 3)
#define STATUS_END_REACHED (1u << 5)
#define STATUS_FAULTS (1u << 2 | 1u << 4 | 1u << 7 | 1u << 8) /* bus, command, watchdog, memory of the unit */
#define NVIC_ICPR 0xE000E280u
#define CMD_RUN (1u << 0)
#define CMD_CLEAR_INTERRUPT (1u << 1)
#define CMD_MAY_SLEEP (1u << 2 | 1u << 3) /* clock and power may end while it is idle */
#define AXI_LIMIT (31u << 16 | 15u << 24) /* 64 bytes at a time; 32 reads and 16 writes under way */

enum { RESET_READS = 100000 };

static bool is_ready;

static uint32_t unit_read(uint32_t offset)
{
    return reg_read((uintptr_t)MCUD_NPU_BASE + offset);
}

static void unit_write(uint32_t offset, uint32_t value)
{
    reg_write((uintptr_t)MCUD_NPU_BASE + offset, value);
}

/* The upper half stays 0 on an Ethos-U55, which has 32 bits. */
static void unit_write_address(uint32_t offset, const void *address)
{
    const uint64_t value = (uintptr_t)address;
    unit_write(offset, (uint32_t)value);
    unit_write(offset + 4u, (uint32_t)(value >> 32));
}

static void memory_barrier(void)
{
#if defined(__arm__)
    __asm__ volatile("dsb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/* Whether the unit is the one that streams are made for. */
static bool is_expected(void)
{
    const uint32_t config = unit_read(UNIT_CONFIG);
    return config >> 28 == MCUD_NPU_PRODUCT && 1u << (config & 15u) == MCUD_NPU_MACS;
}

static bool reset(void)
{
    unit_write(UNIT_RESET, MCUD_NPU_ACCESS);
    if (reg_wait((uintptr_t)MCUD_NPU_BASE + UNIT_STATUS, STATUS_RESETTING, 0u, RESET_READS) == 0 ||
        (unit_read(UNIT_PROT) & 3u) != MCUD_NPU_ACCESS) {
        return false;
    }
    for (uint32_t limit = 0; limit < 4u; limit++) {
        unit_write(UNIT_AXI_LIMIT0 + 4u * limit, AXI_LIMIT);
    }
    return true;
}

/* 1 after the interrupt; 0 if the unit has not finished in time. */
static int32_t wait_for_interrupt(void)
{
#ifdef MCUD_NPU_IRQ
    for (;;) {
        core_interrupts_off();
        const bool has_ended = (unit_read(UNIT_STATUS) & STATUS_INTERRUPT) != 0u;
        if (!has_ended) {
            core_irq(MCUD_NPU_IRQ, 1); /* ends the sleep; no handler runs, since interrupts are off */
            core_sleep();
            core_irq(MCUD_NPU_IRQ, 0);
        }
        core_interrupts_on();
        if (has_ended) {
            return 1;
        }
    }
#else
    return reg_wait((uintptr_t)MCUD_NPU_BASE + UNIT_STATUS, STATUS_INTERRUPT, STATUS_INTERRUPT, MCUD_NPU_PATIENCE);
#endif
}

static void clear_interrupt(void)
{
    unit_write(UNIT_CMD, CMD_CLEAR_INTERRUPT | CMD_MAY_SLEEP);
#ifdef MCUD_NPU_IRQ
    reg_write(NVIC_ICPR + 4u * (MCUD_NPU_IRQ / 32u), 1u << (MCUD_NPU_IRQ % 32u)); /* no handler clears it */
#endif
}

/* Writes the core's cached lines of the regions to memory: the unit reads memory, and a later invalidation must lose
 * nothing. */
static void give_to_unit(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions)
{
#ifdef MCUD_NPU_CACHED
    if (regions->has_payload == 0u) { /* else they are in flash */
        mcud_cache_clean(words, count * (uint32_t)sizeof *words);
    }
    for (uint32_t region = 1; region < MCUD_NPU_REGIONS; region++) {
        mcud_cache_clean(regions->base[region], regions->size_bytes[region]);
    }
#else
    (void)words;
    (void)count;
    (void)regions;
#endif
    memory_barrier();
}

static void take_from_unit(const mcud_npu_regions *regions)
{
    memory_barrier();
#ifdef MCUD_NPU_CACHED
    for (uint32_t region = 1; region < MCUD_NPU_REGIONS; region++) {
        if (((regions->writable >> region) & 1u) != 0u) {
            mcud_cache_invalidate(regions->base[region], regions->size_bytes[region]);
        }
    }
#else
    (void)regions;
#endif
}

static void start(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions)
{
    uint32_t ports = 0;
    unit_write_address(UNIT_QBASE, words);
    unit_write(UNIT_QSIZE, count * (uint32_t)sizeof *words);
    unit_write(UNIT_QCONFIG, regions->has_payload != 0u ? MCUD_NPU_CONSTANT_PORT : MCUD_NPU_STREAM_PORT);
    for (uint32_t region = 0; region < MCUD_NPU_REGIONS; region++) {
        unit_write_address(UNIT_BASEP + 8u * region, regions->base[region]);
        ports |= (region == 0u ? MCUD_NPU_CONSTANT_PORT : MCUD_NPU_ARENA_PORT) << (2u * region);
    }
    unit_write(UNIT_REGIONCFG, ports);
    give_to_unit(words, count, regions);
    unit_write(UNIT_CMD, CMD_RUN);
}

int32_t mcud_npu_run(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions)
{
    if (!mcud_npu_aligned(words, regions)) {
        return MCUD_NPU_UNALIGNED;
    }
    if (!is_ready) {
        is_ready = is_expected() && reset();
    }
    if (!is_ready) {
        return MCUD_NPU_NO_UNIT;
    }
    start(words, count, regions);
    const bool has_ended = wait_for_interrupt() != 0;
    const uint32_t status = unit_read(UNIT_STATUS);
    clear_interrupt();
    take_from_unit(regions);
    if (has_ended && (status & (STATUS_FAULTS | STATUS_END_REACHED)) == STATUS_END_REACHED) {
        return MCUD_NPU_DONE;
    }
    is_ready = reset();
    return has_ended ? MCUD_NPU_FAULT : MCUD_NPU_TIMEOUT;
}
