#include "chain_requests.h"

#include <stddef.h>
#include <string.h>

#include "chain_stage.h"
#include "mcud_hal.h"

static bool within(const chain_buffer *buffer, uint32_t offset, uint32_t count)
{
    return offset <= buffer->count && count <= buffer->count - offset;
}

static uint8_t start(const uint8_t *data)
{
    const uint32_t session = get_u32(data);
    const uint64_t ticks = (uint64_t)get_u32(data + 4) * hal_ticks_hz() / 1000000u;
    if (session == 0 || ticks == 0 || ticks > CHAIN_MOST_TICKS) {
        return ERROR_RANGE;
    }
    chain_start(session, (uint32_t)ticks);
    return 0;
}

static uint8_t put(const uint8_t *data, uint32_t count)
{
    const uint32_t offset = get_u32(data);
    if (!mcud_chain.first || !within(mcud_chain.in, offset, count)) {
        return ERROR_RANGE;
    }
    return chain_put(offset, data + 4, count) ? 0 : ERROR_NOT_NOW;
}

static uint8_t take(uint8_t *data, uint32_t *length)
{
    const uint32_t offset = get_u32(data);
    const uint32_t count = get_u16(data + 4);
    if (!mcud_chain.last || count > MCUD_DATA_BYTES || !within(mcud_chain.out, offset, count)) {
        return ERROR_RANGE;
    }
    const uint8_t *const bytes = chain_output(offset);
    if (bytes == NULL) {
        return ERROR_NOT_NOW;
    }
    memcpy(data, bytes, count);
    *length = count;
    return 0;
}

static uint32_t report(uint8_t *data)
{
    const chain_state *const now = chain_now();
    const chain_counts counts = chain_links_counts();
    put_u32(data, now->session);
    put_u32(data + 4, now->taken);
    put_u32(data + 8, now->done);
    put_u64(data + 12, now->ticks);
    put_u64(data + 20, now->links);
    put_u32(data + 28, now->last);
    put_u32(data + 32, counts.resends);
    put_u32(data + 36, counts.damaged);
    data[40] = (uint8_t)((mcud_chain.in->full ? 1 : 0) | (mcud_chain.out->full ? 2 : 0) | (now->running ? 4 : 0));
    return 41;
}

uint8_t chain_request(mcud_frame *frame, uint32_t *length, bool *keep)
{
    uint8_t *const data = frame_data(frame);
    switch (frame->bytes[0]) {
    case REQUEST_START:
        *keep = true;
        return start(data);
    case REQUEST_PUT:
        *keep = true;
        return put(data, frame->length - 4);
    case REQUEST_TAKE:
        return take(data, length);
    case REQUEST_NEXT:
        *keep = true;
        return chain_next() ? 0 : ERROR_NOT_NOW;
    default:
        *length = report(data);
        return 0;
    }
}

bool chain_refuses(uint8_t type)
{
    return chain_now()->running && (type == REQUEST_WRITE || type == REQUEST_RUN || type == REQUEST_TIME ||
                                    type == REQUEST_CALL || type == REQUEST_STACK);
}
