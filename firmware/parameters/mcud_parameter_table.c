#include "mcud_parameter_table.h"

#include <string.h>

enum {
    VERSION_AT = 4,
    HASH_AT = 8,
    BYTES_AT = 16,
    SEQUENCE_AT = 20,
    CRC_AT = 28,
    CHUNK_BYTES = 64 /* read at a time onto the stack, for the CRC alone */
};

static const uint8_t magic[4] = {'M', 'C', 'U', 'P'};

/* The blob of a slot, or why there is none. */
typedef struct {
    uint32_t status;
    uint32_t slot;
    uint32_t sequence;
    uint32_t crc;
} slot_content;

static uint32_t get_field(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static void put_field(uint8_t *to, uint32_t value)
{
    for (uint32_t i = 0; i < 4u; i++) {
        to[i] = (uint8_t)(value >> (8u * i));
    }
}

/* Four bits at a time: a table of 64 bytes. */
uint32_t mcud_parameters_crc(uint32_t crc, const void *bytes, uint32_t count)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };
    const uint8_t *from = bytes;
    crc = ~crc;
    for (uint32_t i = 0; i < count; i++) {
        crc ^= from[i];
        crc = table[crc & 15u] ^ crc >> 4;
        crc = table[crc & 15u] ^ crc >> 4;
    }
    return ~crc;
}

/* Notes that the values are set. */
static void note_begun(const mcud_parameter_table *table)
{
    if (table->begun != 0) {
        *table->begun = 1;
    }
}

void mcud_parameters_reset(const mcud_parameter_table *table)
{
    if (table->initial != 0) {
        memcpy(table->values, table->initial, table->bytes);
    } else {
        memset(table->values, 0, table->bytes);
    }
    note_begun(table);
}

void mcud_parameters_begin(const mcud_parameter_table *table)
{
    if (table->begun != 0 && *table->begun == 0u) {
        mcud_parameters_reset(table);
    }
}

uint32_t mcud_parameters_check(const mcud_parameter_table *table, const uint8_t *header)
{
    if (memcmp(header, magic, sizeof magic) != 0) {
        return MCUD_PARAMETERS_ABSENT;
    }
    if (get_field(header + VERSION_AT) != MCUD_PARAMETERS_VERSION) {
        return MCUD_PARAMETERS_LAYOUT;
    }
    if (memcmp(header + HASH_AT, table->hash, sizeof table->hash) != 0 ||
        get_field(header + BYTES_AT) != table->bytes) {
        return MCUD_PARAMETERS_FOREIGN;
    }
    return MCUD_PARAMETERS_OK;
}

uint32_t mcud_parameters_check_blob(const mcud_parameter_table *table, const void *blob, uint32_t bytes)
{
    const uint8_t *const header = blob;
    if (bytes < MCUD_PARAMETERS_HEADER_BYTES) {
        return MCUD_PARAMETERS_ABSENT;
    }
    const uint32_t status = mcud_parameters_check(table, header);
    if (status != MCUD_PARAMETERS_OK) {
        return status;
    }
    if (bytes - MCUD_PARAMETERS_HEADER_BYTES < table->bytes) {
        return MCUD_PARAMETERS_CORRUPT;
    }
    if ((uintptr_t)blob % 4u != 0u) {
        return MCUD_PARAMETERS_MISALIGNED;
    }
    const uint32_t crc = mcud_parameters_crc(0, header, CRC_AT);
    const uint8_t *const values = header + MCUD_PARAMETERS_HEADER_BYTES;
    const int same = mcud_parameters_crc(crc, values, table->bytes) == mcud_parameters_stated_crc(header);
    return same ? MCUD_PARAMETERS_OK : MCUD_PARAMETERS_CORRUPT;
}

void mcud_parameters_header(const mcud_parameter_table *table, uint32_t sequence, uint8_t *header)
{
    memset(header, 0, MCUD_PARAMETERS_HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    put_field(header + VERSION_AT, MCUD_PARAMETERS_VERSION);
    memcpy(header + HASH_AT, table->hash, sizeof table->hash);
    put_field(header + BYTES_AT, table->bytes);
    put_field(header + SEQUENCE_AT, sequence);
    const uint32_t crc = mcud_parameters_crc(0, header, CRC_AT);
    put_field(header + CRC_AT, mcud_parameters_crc(crc, table->values, table->bytes));
}

uint32_t mcud_parameters_stated_crc(const uint8_t *header)
{
    return get_field(header + CRC_AT);
}

/* Whether `count` bytes at offset `at` of the values keep the ranges; `count` and `at` are even. */
static int are_in_range(const mcud_parameter_table *table, const uint8_t *bytes, uint32_t at, uint32_t count)
{
    for (uint32_t i = 0; i < table->range_count; i++) {
        const mcud_parameter_range *const range = &table->ranges[i];
        const uint32_t range_end = range->offset + 2u * range->count;
        const uint32_t end = at + count < range_end ? at + count : range_end;
        for (uint32_t place = at > range->offset ? at : range->offset; place < end; place += 2u) {
            const uint8_t *const number = bytes + (place - at);
            if ((uint32_t)(number[0] | number[1] << 8) > range->most) {
                return 0;
            }
        }
    }
    return 1;
}

/* The status of a slot whose read returned `result`, which is not 0. */
static uint32_t status_of(uint32_t result)
{
    const int says_why = result == MCUD_PARAMETERS_ABSENT || result == MCUD_PARAMETERS_CORRUPT;
    return says_why ? result : (uint32_t)MCUD_PARAMETERS_STORAGE;
}

/* Reads a slot and checks its header and CRC. The values in RAM stay as they are. */
static slot_content examine(const mcud_parameter_table *table, const mcud_parameter_storage *storage, uint32_t slot)
{
    uint8_t header[MCUD_PARAMETERS_HEADER_BYTES];
    slot_content content = {.slot = slot};
    int in_range = 1;
    const uint32_t result = storage->read(storage->user, slot, 0, header, sizeof header);
    content.status = result != 0u ? status_of(result) : mcud_parameters_check(table, header);
    if (content.status != MCUD_PARAMETERS_OK) {
        return content;
    }
    content.sequence = get_field(header + SEQUENCE_AT);
    content.crc = mcud_parameters_crc(0, header, CRC_AT);
    for (uint32_t done = 0; done < table->bytes; done += CHUNK_BYTES) {
        uint8_t chunk[CHUNK_BYTES];
        const uint32_t left = table->bytes - done;
        const uint32_t count = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        const uint32_t failed = storage->read(storage->user, slot, MCUD_PARAMETERS_HEADER_BYTES + done, chunk, count);
        if (failed != 0u) {
            content.status = status_of(failed);
            return content;
        }
        content.crc = mcud_parameters_crc(content.crc, chunk, count);
        in_range &= are_in_range(table, chunk, done, count);
    }
    if (content.crc != mcud_parameters_stated_crc(header)) {
        content.status = MCUD_PARAMETERS_CORRUPT;
    } else if (in_range == 0) {
        content.status = MCUD_PARAMETERS_INVALID;
    }
    return content;
}

/* Sequence numbers wrap: the later one is less than half of their range ahead. */
static int is_later(uint32_t sequence, uint32_t other)
{
    return sequence - other - 1u < 0x7FFFFFFFu;
}

/* The newest intact blob, or the larger status of two slots without one. A slot that cannot be read may have a newer
 * blob than the other: the status is then MCUD_PARAMETERS_STORAGE. */
static slot_content newest(const mcud_parameter_table *table, const mcud_parameter_storage *storage)
{
    const slot_content one = examine(table, storage, 0);
    const slot_content other = examine(table, storage, 1);
    if (one.status == MCUD_PARAMETERS_STORAGE || other.status == MCUD_PARAMETERS_STORAGE) {
        return one.status == MCUD_PARAMETERS_STORAGE ? one : other;
    }
    if (one.status == MCUD_PARAMETERS_OK && other.status == MCUD_PARAMETERS_OK) {
        return is_later(other.sequence, one.sequence) ? other : one;
    }
    if (one.status == MCUD_PARAMETERS_OK || other.status == MCUD_PARAMETERS_OK) {
        return one.status == MCUD_PARAMETERS_OK ? one : other;
    }
    return one.status > other.status ? one : other;
}

uint32_t mcud_parameters_load(const mcud_parameter_table *table, const mcud_parameter_storage *storage)
{
    uint8_t header[MCUD_PARAMETERS_HEADER_BYTES];
    uint8_t *const values = table->values;
    const slot_content blob = newest(table, storage);
    if (blob.status != MCUD_PARAMETERS_OK) {
        return blob.status;
    }
    if (storage->read(storage->user, blob.slot, 0, header, sizeof header) != 0u) {
        return MCUD_PARAMETERS_STORAGE;
    }
    /* The CRC was right a moment ago. Storage that now fails, or has other bytes, must not leave a mixture. */
    const uint32_t failed = storage->read(storage->user, blob.slot, MCUD_PARAMETERS_HEADER_BYTES, values, table->bytes);
    const uint32_t crc = mcud_parameters_crc(mcud_parameters_crc(0, header, CRC_AT), values, table->bytes);
    if (failed != 0u || crc != blob.crc || !are_in_range(table, values, 0, table->bytes)) {
        mcud_parameters_reset(table);
        return MCUD_PARAMETERS_UNSTABLE;
    }
    note_begun(table);
    return MCUD_PARAMETERS_OK;
}

/* The header is written last: until then the slot has no blob, and a load takes the other slot. */
uint32_t mcud_parameters_save(const mcud_parameter_table *table, const mcud_parameter_storage *storage)
{
    uint8_t header[MCUD_PARAMETERS_HEADER_BYTES];
    mcud_parameters_begin(table);
    const slot_content old = newest(table, storage);
    if (old.status == MCUD_PARAMETERS_STORAGE) {
        return MCUD_PARAMETERS_STORAGE;
    }
    const int is_first = old.status != MCUD_PARAMETERS_OK;
    const uint32_t slot = is_first || old.slot != 0u ? 0u : 1u;
    mcud_parameters_header(table, is_first ? 1u : old.sequence + 1u, header);
    if (storage->erase != 0 && storage->erase(storage->user, slot) != 0u) {
        return MCUD_PARAMETERS_STORAGE;
    }
    if (storage->write(storage->user, slot, MCUD_PARAMETERS_HEADER_BYTES, table->values, table->bytes) != 0u
        || storage->write(storage->user, slot, 0, header, sizeof header) != 0u) {
        return MCUD_PARAMETERS_STORAGE;
    }
    const slot_content saved = newest(table, storage); /* the blob that a load would take */
    const int same = saved.status == MCUD_PARAMETERS_OK && saved.slot == slot
        && saved.crc == mcud_parameters_stated_crc(header);
    return same ? MCUD_PARAMETERS_OK : MCUD_PARAMETERS_STORAGE;
}
