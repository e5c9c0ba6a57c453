#include "parameter_requests.h"

#if MCUD_PARAMETERS

#include <string.h>

/* A blob that arrives in parts. */
static struct {
    uint32_t next; /* offset in the blob of the next part; 0: no header has arrived */
    uint32_t crc;  /* of the bytes that have arrived */
    uint32_t stated_crc;
} arriving;

bool parameters_are_mixed(void)
{
    return arriving.next > MCUD_PARAMETERS_HEADER_BYTES;
}

static uint8_t restore(void)
{
    memset(&arriving, 0, sizeof arriving);
    mcud_parameters_reset(mcud_deployed_parameters);
    return 0;
}

static uint8_t begin(const uint8_t *header, uint32_t count)
{
    if (count != MCUD_PARAMETERS_HEADER_BYTES) {
        return ERROR_LENGTH;
    }
    if (mcud_parameters_check(mcud_deployed_parameters, header) != MCUD_PARAMETERS_OK) {
        return ERROR_FOREIGN;
    }
    if (parameters_are_mixed()) {
        restore(); /* the blob before this one never ended */
    }
    arriving.next = count;
    arriving.crc = mcud_parameters_crc(0, header, count - 4u);
    arriving.stated_crc = mcud_parameters_stated_crc(header);
    return 0;
}

static uint8_t push(const uint8_t *data, uint32_t count)
{
    const mcud_parameter_table *const table = mcud_deployed_parameters;
    const uint32_t offset = get_u32(data);
    if (offset == 0u) {
        return begin(data + 4, count);
    }
    const uint32_t end = MCUD_PARAMETERS_HEADER_BYTES + table->bytes;
    if (arriving.next == 0u || offset != arriving.next || count == 0u || count > end - offset) {
        return ERROR_RANGE;
    }
    memcpy((uint8_t *)table->values + (offset - MCUD_PARAMETERS_HEADER_BYTES), data + 4, count);
    arriving.crc = mcud_parameters_crc(arriving.crc, data + 4, count);
    arriving.next += count;
    if (arriving.next == end) {
        if (arriving.crc != arriving.stated_crc) {
            restore();
            return ERROR_CORRUPT;
        }
        memset(&arriving, 0, sizeof arriving);
    }
    return 0;
}

static uint8_t pull(uint8_t *data, uint32_t *length)
{
    const mcud_parameter_table *const table = mcud_deployed_parameters;
    const uint32_t offset = get_u32(data);
    const uint32_t count = get_u16(data + 4);
    if (offset > table->bytes || count > table->bytes - offset || count > MCUD_DATA_BYTES) {
        return ERROR_RANGE;
    }
    memcpy(data, (const uint8_t *)table->values + offset, count);
    *length = count;
    return 0;
}

uint8_t parameter_request(mcud_frame *frame, uint32_t *length)
{
    uint8_t *const data = frame_data(frame);
    *length = 0;
    switch (frame->bytes[0]) {
    case REQUEST_PUSH:
        return push(data, frame->length - 4u);
    case REQUEST_RESTORE:
        return restore();
    default:
        break;
    }
    if (parameters_are_mixed()) {
        return ERROR_NOT_NOW;
    }
    if (frame->bytes[0] == REQUEST_PULL) {
        return pull(data, length);
    }
    mcud_parameters_header(mcud_deployed_parameters, 0, data);
    *length = MCUD_PARAMETERS_HEADER_BYTES;
    return 0;
}

#else

typedef int no_parameters; /* C has no empty source */

#endif
