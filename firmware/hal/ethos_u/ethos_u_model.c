/* A functional model of an Ethos-U: reads commands, stores registers, and runs operations in sequence. */
#include <string.h>

#include "ethos_u_unit.h"

enum {
    OPERATION_BITS = 0x3FF,
    RESERVED_BITS = 0x3C00,
    PAYLOAD_BITS = 0xC000,
    PAYLOAD = 0x4000,
    INTERNAL = 0x100, /* a region that is the unit's own memory */
    STRIDED = 0x600,  /* a bit of a DMA's region on the Ethos-U65 */
    UNIT_BYTES = MCUD_NPU_MACS == 256 ? 48 * 1024 : MCUD_NPU_MACS == 128 ? 24 * 1024 : 16 * 1024
};

static mcud_npu_unit the_unit;

/* A bit for each register that a unit has: small ones of 16 bits, large ones of 32 or 40. */
static const uint32_t small_known[5] = {0x9DFEBEBFu, 0x000FA3FFu, 0u, 0u, 0x0000BE23u};
static const uint32_t large_known[5] = {0x007F007Fu, 0x001F007Fu, 0u, 0u, 0x000F007Fu};

static bool has(const uint32_t *known, uint32_t index)
{
    return ((known[index / 32u] >> (index % 32u)) & 1u) != 0u;
}

const uint8_t *mcud_npu_read(const mcud_npu_unit *unit, uint32_t region, uint64_t address, uint64_t size)
{
    const uint32_t number = region % MCUD_NPU_REGIONS;
    const uint64_t bytes = unit->regions->size_bytes[number];
    return address <= bytes && size <= bytes - address ? unit->regions->base[number] + (uintptr_t)address : NULL;
}

uint8_t *mcud_npu_write(const mcud_npu_unit *unit, uint32_t region, uint64_t address, uint64_t size)
{
    const uint8_t *place = mcud_npu_read(unit, region, address, size);
    const bool writable = ((unit->regions->writable >> (region % MCUD_NPU_REGIONS)) & 1u) != 0u;
    return writable ? (uint8_t *)(uintptr_t)place : NULL;
}

/* Copies between regions, or a table into the unit; no command reads other bytes of the unit's memory. */
static int32_t copy(mcud_npu_unit *unit)
{
    const uint32_t from_region = mcud_npu_small(unit, NPU_DMA0_SRC_REGION);
    const uint32_t to_region = mcud_npu_small(unit, NPU_DMA0_DST_REGION);
    const uint64_t to = mcud_npu_large(unit, NPU_DMA0_DST);
    const uint64_t size = mcud_npu_large(unit, NPU_DMA0_LEN);
    const uint64_t tables = UNIT_BYTES - MCUD_NPU_TABLE_BYTES;
    if (((from_region | to_region) & STRIDED) != 0u || (from_region & INTERNAL) != 0u) {
        return MCUD_NPU_UNSUPPORTED;
    }
    const uint8_t *source = mcud_npu_read(unit, from_region, mcud_npu_large(unit, NPU_DMA0_SRC), size);
    if (source == NULL) {
        return MCUD_NPU_OUTSIDE;
    }
    if ((to_region & INTERNAL) == 0u) {
        uint8_t *target = mcud_npu_write(unit, to_region, to, size);
        if (target == NULL) {
            return MCUD_NPU_OUTSIDE;
        }
        memmove(target, source, (size_t)size);
        return MCUD_NPU_DONE;
    }
    if (to > UNIT_BYTES || size > UNIT_BYTES - to) {
        return MCUD_NPU_OUTSIDE;
    }
    if (to < tables) {
        return MCUD_NPU_UNSUPPORTED;
    }
    memcpy(unit->tables + (size_t)(to - tables), source, (size_t)size);
    return MCUD_NPU_DONE;
}

/* On units with 16 KB of memory, an operation without a table overwrites the tables. */
static void end_tables(mcud_npu_unit *unit)
{
    if (MCUD_NPU_MACS <= 64 && (mcud_npu_small(unit, NPU_ACTIVATION) & 0x10u) == 0u) {
        memset(unit->tables, 0xA5, sizeof unit->tables);
    }
}

static int32_t compute(mcud_npu_unit *unit, uint32_t operation, uint32_t mode)
{
    int32_t code;
    if (mcud_npu_small(unit, NPU_PARALLEL_MODE) != 0u) {
        return MCUD_NPU_UNSUPPORTED; /* two cores share the weights of an operation */
    }
    if (operation == NPU_POOL) {
        code = mcud_npu_pool(unit, mode);
    } else if (operation == NPU_ELEMENTWISE) {
        code = mcud_npu_elementwise(unit, mode);
    } else {
        code = mcud_npu_convolve(unit, operation == NPU_DEPTHWISE);
    }
    end_tables(unit);
    return code;
}

static int32_t command(mcud_npu_unit *unit, uint32_t operation, uint32_t parameter)
{
    switch (operation) {
    case NPU_IRQ:
    case NPU_DMA_WAIT:
    case NPU_KERNEL_WAIT:
    case NPU_PMU_MASK:
        return MCUD_NPU_DONE;
    case NPU_DMA_START:
        return copy(unit);
    case NPU_CONV:
    case NPU_DEPTHWISE:
    case NPU_POOL:
    case NPU_ELEMENTWISE:
        return compute(unit, operation, parameter);
    default:
        break;
    }
    const uint32_t index = operation - MCUD_NPU_FIRST_SMALL;
    if (operation < MCUD_NPU_FIRST_SMALL || index >= MCUD_NPU_SMALL_REGISTERS || !has(small_known, index)) {
        return MCUD_NPU_BAD_COMMAND;
    }
    unit->small[index] = (uint16_t)parameter;
    return MCUD_NPU_DONE;
}

int32_t mcud_npu_run(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions)
{
    mcud_npu_unit *unit = &the_unit;
    memset(unit, 0, sizeof *unit);
    unit->regions = regions;
    if (!mcud_npu_aligned(words, regions)) {
        return MCUD_NPU_UNALIGNED;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t operation = words[i] & OPERATION_BITS;
        const uint32_t parameter = words[i] >> 16;
        int32_t code = MCUD_NPU_DONE;
        if ((words[i] & RESERVED_BITS) != 0u) {
            return MCUD_NPU_BAD_COMMAND;
        }
        if ((words[i] & PAYLOAD_BITS) == PAYLOAD) {
            i++;
            if (i == count || operation >= MCUD_NPU_LARGE_REGISTERS || !has(large_known, operation)) {
                return MCUD_NPU_BAD_COMMAND;
            }
            unit->large[operation] = words[i] | ((uint64_t)parameter << 32);
        } else if ((words[i] & PAYLOAD_BITS) != 0u) {
            return MCUD_NPU_BAD_COMMAND;
        } else if (operation == NPU_STOP) {
            return MCUD_NPU_DONE;
        } else {
            code = command(unit, operation, parameter);
        }
        if (code != MCUD_NPU_DONE) {
            return code;
        }
    }
    return MCUD_NPU_BAD_COMMAND;
}
