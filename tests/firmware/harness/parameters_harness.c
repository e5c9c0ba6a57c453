/* Parameters from hostile storage and from a hostile host. Blobs are right, changed, truncated or of another model; reads
 * fail, or give other bytes the second time. The values are whole at any time: the initial ones, or those of an intact
 * blob. */
#include <string.h>

#include "harness.h"
#include "mcud_parameter_table.h"
#include "parameter_requests.h"

enum { VALUES = 96, BLOB = 32 + VALUES, CRC_AT = 28, BEYOND = 8, TRIES = 4 };

static uint8_t values[VALUES];
static uint8_t initial[VALUES];
static uint8_t begun;
static const mcud_parameter_table table = {values, initial, &begun, VALUES, {1, 2, 3, 4, 5, 6, 7, 8}, NULL, 0};
const mcud_parameter_table *const mcud_deployed_parameters = &table;

static struct {
    uint8_t bytes[MCUD_PARAMETERS_SLOTS][BLOB];
    uint32_t size[MCUD_PARAMETERS_SLOTS]; /* bytes that can be read */
    uint32_t reads_left;                  /* until a read fails, or changes what it reads */
    bool changes;
} storage;

/* Bit by bit: independent of the table of the code that is tested. */
static uint32_t plain_crc(const uint8_t *bytes, uint32_t count)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (uint32_t bit = 0; bit < 8; bit++) {
            crc = (crc & 1u) != 0u ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        }
    }
    return ~crc;
}

static uint32_t blob_crc(const uint8_t *blob)
{
    uint8_t joined[CRC_AT + VALUES];
    memcpy(joined, blob, CRC_AT);
    memcpy(joined + CRC_AT, blob + 32, VALUES);
    return plain_crc(joined, sizeof joined);
}

static bool is_intact(const uint8_t *blob)
{
    static const uint8_t start[20] = {'M', 'C', 'U', 'P', 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, VALUES};
    return memcmp(blob, start, sizeof start) == 0 && get_u32(blob + CRC_AT) == blob_crc(blob);
}

/* The slot that a save must not touch; MCUD_PARAMETERS_SLOTS if neither is intact. */
static uint32_t newest_slot(void)
{
    const bool intact[] = {is_intact(storage.bytes[0]), is_intact(storage.bytes[1])};
    const uint32_t ahead = get_u32(storage.bytes[1] + 20) - get_u32(storage.bytes[0] + 20);
    if (intact[0] && intact[1]) {
        return ahead != 0u && ahead < 0x80000000u ? 1 : 0;
    }
    return intact[0] ? 0 : intact[1] ? 1 : MCUD_PARAMETERS_SLOTS;
}

static void draw_blob(uint8_t *blob)
{
    static const uint8_t start[20] = {'M', 'C', 'U', 'P', 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, VALUES};
    for (uint32_t i = 0; i < BLOB; i++) {
        blob[i] = (uint8_t)draw(256);
    }
    if (draw(4) == 0) {
        return;
    }
    memcpy(blob, start, sizeof start);
    put_u32(blob + 20, draw(2) == 0 ? draw(4) : 0xFFFFFFFFu - draw(4));
    if (draw(4) == 0) {
        blob[draw(20)] ^= (uint8_t)(1u << draw(8)); /* another model or size, with a right CRC */
    }
    put_u32(blob + CRC_AT, blob_crc(blob));
    if (draw(4) == 0) {
        blob[draw(BLOB)] ^= (uint8_t)(1u << draw(8));
    }
}

static uint32_t read_bytes(void *user, uint32_t slot, uint32_t offset, void *to, uint32_t bytes)
{
    (void)user;
    require(slot < MCUD_PARAMETERS_SLOTS);
    if (storage.size[slot] < offset || storage.size[slot] - offset < bytes) {
        return 1;
    }
    memcpy(to, storage.bytes[slot] + offset, bytes);
    if (storage.reads_left-- == 0u) {
        if (!storage.changes) {
            return 1;
        }
        ((uint8_t *)to)[bytes / 2u] ^= 1u;
    }
    return 0;
}

static uint32_t write_bytes(void *user, uint32_t slot, uint32_t offset, const void *from, uint32_t bytes)
{
    (void)user;
    require(offset % MCUD_PARAMETERS_GRAIN == 0u && bytes % MCUD_PARAMETERS_GRAIN == 0u);
    require(slot < MCUD_PARAMETERS_SLOTS && offset <= BLOB && bytes <= BLOB - offset);
    if (draw(8) == 0) {
        return 1;
    }
    memcpy(storage.bytes[slot] + offset, from, draw(8) == 0 ? bytes / 2u : bytes);
    return 0;
}

static void draw_storage(void)
{
    for (uint32_t slot = 0; slot < MCUD_PARAMETERS_SLOTS; slot++) {
        draw_blob(storage.bytes[slot]);
        storage.size[slot] = draw(4) == 0 ? draw(BLOB) : BLOB;
    }
    storage.reads_left = draw(4) == 0 ? draw(12) : UINT32_MAX;
    storage.changes = draw(2) == 0;
}

static bool is_held(uint32_t slot)
{
    return is_intact(storage.bytes[slot]) && memcmp(values, storage.bytes[slot] + 32, VALUES) == 0;
}

static void load(void)
{
    const mcud_parameter_storage calls = {read_bytes, write_bytes, NULL, NULL};
    uint8_t before[VALUES];
    memcpy(before, values, sizeof values);
    const uint32_t result = mcud_parameters_load(&table, &calls);
    if (result == MCUD_PARAMETERS_UNSTABLE) {
        require(memcmp(values, initial, sizeof values) == 0);
    } else if (result != MCUD_PARAMETERS_OK) {
        require(memcmp(values, before, sizeof values) == 0);
    } else if (storage.changes) { /* an older blob, if a read told nothing of its failure */
        require(is_held(0) || is_held(1));
    } else {
        require(is_held(newest_slot()));
    }
}

static void save(void)
{
    const mcud_parameter_storage calls = {read_bytes, write_bytes, NULL, NULL};
    uint8_t before[VALUES];
    uint8_t others[MCUD_PARAMETERS_SLOTS][BLOB];
    storage.size[0] = storage.size[1] = BLOB;
    memcpy(before, values, sizeof values);
    memcpy(others, storage.bytes, sizeof others);
    const uint32_t kept = newest_slot();
    const uint32_t result = mcud_parameters_save(&table, &calls);
    require(memcmp(values, before, sizeof values) == 0);
    require(storage.changes || kept == MCUD_PARAMETERS_SLOTS || memcmp(others[kept], storage.bytes[kept], BLOB) == 0);
    storage.reads_left = UINT32_MAX;
    if (result == MCUD_PARAMETERS_OK) {
        require(mcud_parameters_load(&table, &calls) == MCUD_PARAMETERS_OK);
        require(memcmp(values, before, sizeof values) == 0);
    }
}

/* A blob by requests, in parts of any length: mostly in order. */
static void push(void)
{
    static mcud_frame frame;
    uint8_t blob[BLOB + BEYOND] = {0};
    uint8_t *const data = frame_data(&frame);
    uint32_t length = 0;
    draw_blob(blob);
    for (uint32_t next = 0; next < BLOB;) {
        const uint32_t count = next == 0 ? 32u : 1u + draw(BLOB - next + (draw(8) == 0 ? BEYOND : 0u));
        const uint32_t offset = draw(16) == 0 ? draw(UINT32_MAX) : next;
        put_u32(data, offset);
        memcpy(data + 4, blob + next, count);
        frame.bytes[0] = REQUEST_PUSH;
        frame.length = 4 + count;
        const uint8_t code = parameter_request(&frame, &length);
        require(length == 0 && (code == 0 || code >= ERROR_LENGTH));
        require(code != 0 || offset == next || offset == 0);
        require(code != 0 || next + count <= BLOB);
        if (code != 0) {
            return;
        }
        next += count;
        if (draw(8) == 0) {
            break;
        }
        require(parameters_are_mixed() == (next > 32 && next < BLOB));
        require(next < BLOB || (is_intact(blob) && memcmp(values, blob + 32, VALUES) == 0));
    }
}

static void pull(void)
{
    static mcud_frame frame;
    uint32_t length = 0;
    frame.bytes[0] = REQUEST_PULL;
    put_u32(frame_data(&frame), draw(8) == 0 ? draw(UINT32_MAX) : draw(VALUES + 2));
    put_u32(frame_data(&frame) + 4, draw(VALUES + 2));
    frame.length = 6;
    const uint8_t code = parameter_request(&frame, &length);
    require(code == 0 || length == 0);
    require(!parameters_are_mixed() || code == ERROR_NOT_NOW);
}

void harness(void)
{
    static mcud_frame frame;
    uint32_t length = 0;
    for (uint32_t i = 0; i < VALUES; i++) {
        initial[i] = (uint8_t)i;
    }
    frame.bytes[0] = REQUEST_RESTORE;
    require(parameter_request(&frame, &length) == 0 && !parameters_are_mixed());
    require(memcmp(values, initial, sizeof values) == 0);
    for (uint32_t i = 0; i < TRIES; i++) {
        switch (draw(4)) {
        case 0:
            draw_storage();
            load();
            break;
        case 1:
            draw_storage();
            save();
            break;
        case 2:
            push();
            break;
        default:
            pull();
            break;
        }
    }
}
