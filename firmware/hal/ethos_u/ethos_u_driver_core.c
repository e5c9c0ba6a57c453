/* Runs command streams by Arm's core driver (ethosu_driver.h), which SDKs, Zephyr and CMSIS packs contain: it has the
 * interrupt, the caches and the power of the unit, and shares it with other programs.
 *
 * The driver takes a payload: a header and a stream. Joined streams have their header in flash; other streams are
 * copied after a header in RAM. The driver cleans the caches over the regions, so a copied payload is the last region,
 * in its own cache lines. A driver with a fast memory would put region 2 there, so it is initialised without one.
 */
#include <stdbool.h>
#include <string.h>

#include "ethosu_driver.h"
#include "mcud_npu.h"

#ifndef MCUD_NPU_STREAM_WORDS
#define MCUD_NPU_STREAM_WORDS 1024
#endif

enum { HEADER = MCUD_NPU_PAYLOAD_WORDS }; /* the stream begins at a multiple of 16 bytes */
enum { STREAM = 2, NOTHING = 5 };         /* actions of the driver */
enum { LINE_WORDS = 8, LINE_BYTES = 32, PAYLOAD_REGION = MCUD_NPU_REGIONS - 1, FAST_REGION = 2 };

#define MAGIC 0x31504F43u /* COP1 */

static uint32_t room[HEADER + MCUD_NPU_STREAM_WORDS + 2 * LINE_WORDS];

/* The header and the words, in separate cache lines. */
static const uint32_t *written_payload(const uint32_t *words, uint32_t count)
{
    uint32_t *const payload = room + LINE_WORDS - (uintptr_t)room / sizeof *room % LINE_WORDS;
    payload[0] = MAGIC;
    payload[1] = NOTHING;
    payload[2] = NOTHING;
    payload[3] = STREAM | count << 16;
    memcpy(payload + HEADER, words, count * sizeof *words);
    return payload;
}

int32_t mcud_npu_run(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions)
{
    const bool is_written = regions->has_payload == 0u;
    uint64_t bases[MCUD_NPU_REGIONS];
    size_t sizes[MCUD_NPU_REGIONS];
    if (is_written && count > MCUD_NPU_STREAM_WORDS) {
        return MCUD_NPU_TOO_LONG;
    }
    if (!mcud_npu_aligned(words, regions)) {
        return MCUD_NPU_UNALIGNED;
    }
    struct ethosu_driver *unit = ethosu_reserve_driver();
    if (unit == NULL) {
        return MCUD_NPU_NO_UNIT;
    }
    int32_t code = MCUD_NPU_UNSUPPORTED;
    const uint32_t *const payload = is_written ? written_payload(words, count) : words - HEADER;
    const int bytes = (int)((HEADER + count) * sizeof *words);
    for (uint32_t region = 0; region < MCUD_NPU_REGIONS; region++) {
        bases[region] = (uintptr_t)regions->base[region];
        sizes[region] = regions->size_bytes[region];
    }
    if (sizes[PAYLOAD_REGION] == 0u && (sizes[FAST_REGION] == 0u || unit->fast_memory == 0u)) {
        bases[PAYLOAD_REGION] = is_written ? (uintptr_t)payload : 0u;
        sizes[PAYLOAD_REGION] = is_written ? ((size_t)bytes + LINE_BYTES - 1u) / LINE_BYTES * LINE_BYTES : 0u;
        code = ethosu_invoke_v3(unit, payload, bytes, bases, sizes, MCUD_NPU_REGIONS, NULL) == 0 ? MCUD_NPU_DONE
                                                                                                 : MCUD_NPU_FAULT;
    }
    ethosu_release_driver(unit);
    return code;
}
