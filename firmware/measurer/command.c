#include "command.h"

#include <string.h>

#include "mcud_hal.h"
#include "sanitizer.h"
#include "timing.h"

#if MCUD_CHAIN
#include "chain_requests.h"
#endif
#if MCUD_PARAMETERS
#include "parameter_requests.h"
#endif

/* A reply, whose data are in the frame. */
typedef struct {
    uint32_t length;
    uint8_t type;
    bool keep; /* the request must not be executed again */
} reply;

static reply ok(mcud_frame *frame, uint32_t length, bool keep)
{
    return (reply){length, (uint8_t)(frame->bytes[0] | REPLY), keep};
}

static reply error(mcud_frame *frame, uint8_t code)
{
    frame_data(frame)[0] = code;
    return (reply){1, REPLY_ERROR, true};
}

/* The arena bytes [offset, offset + count), or NULL if that is outside. */
static uint8_t *arena_range(uint32_t memory, uint32_t offset, uint32_t count)
{
    if (memory >= mcud_deployed->arena_count) {
        return NULL;
    }
    const mcud_arena *arena = &mcud_deployed->arenas[memory];
    return offset <= arena->bytes && count <= arena->bytes - offset ? arena->base + offset : NULL;
}

static bool steps_exist(uint32_t first, uint32_t count)
{
    return first <= mcud_deployed->steps && count <= mcud_deployed->steps - first;
}

static uint32_t put_string(uint8_t *to, const char *string)
{
    const uint32_t length = (uint32_t)strlen(string);
    to[0] = (uint8_t)length;
    memcpy(to + 1, string, length);
    return length + 1;
}

static reply hello(mcud_frame *frame)
{
    uint8_t *const data = frame_data(frame); /* the first four bytes, the nonce, go back as they came */
    data[4] = MCUD_WIRE_VERSION;
    data[5] = (uint8_t)sizeof(void *);
    data[6] = (uint8_t)sizeof(mcud_offset);
    data[7] = MCUD_ALIGN;
    put_u32(data + 8, (uint32_t)(MCUD_FIRMWARE_HASH));
    put_u32(data + 12, hal_clock_hz());
    put_u32(data + 16, hal_ticks_hz());
    put_u32(data + 20, mcud_deployed->steps);
    put_u32(data + 24, mcud_kernel_count);
    data[28] = (uint8_t)MCUD_DATA_BYTES;
    data[29] = (uint8_t)(MCUD_DATA_BYTES >> 8);
    data[30] = MCUD_TIME_STEPS;
    data[31] = (uint8_t)mcud_deployed->arena_count;
    uint32_t length = 32;
    for (uint32_t i = 0; i < mcud_deployed->arena_count; i++) {
        put_u64(data + length, (uintptr_t)mcud_deployed->arenas[i].base);
        put_u32(data + length + 8, mcud_deployed->arenas[i].bytes);
        length += 12;
    }
    length += put_string(data + length, MCUD_BOARD_NAME);
    return ok(frame, length, false);
}

static reply write_memory(mcud_frame *frame)
{
    uint8_t *const data = frame_data(frame);
    const uint32_t count = frame->length - 5;
    uint8_t *const to = arena_range(data[0], get_u32(data + 1), count);
    if (to == NULL) {
        return error(frame, ERROR_RANGE);
    }
    memcpy(to, data + 5, count);
    return ok(frame, 0, false);
}

static reply read_memory(mcud_frame *frame)
{
    uint8_t *const data = frame_data(frame);
    const uint32_t count = get_u16(data + 5);
    const uint8_t *const from = arena_range(data[0], get_u32(data + 1), count);
    if (from == NULL || count > MCUD_DATA_BYTES) {
        return error(frame, ERROR_RANGE);
    }
    memcpy(data, from, count);
    return ok(frame, count, false);
}

/* Tells the host that its request arrived, since the reply may take a while. */
static void send_busy(mcud_frame *frame)
{
    frame_send(frame, REPLY_BUSY, 0);
}

/* Drops received bytes. True if some arrived while a kernel ran: their interrupts are part of the ticks. They can only
 * be a repeat of the request that is about to be answered, or a new HELLO, which will be repeated. */
static bool drain(void)
{
    bool arrived = false;
    while (hal_uart_read() >= 0) {
        arrived = true;
    }
    return arrived;
}

static reply ticks_reply(mcud_frame *frame, uint8_t type, uint64_t ticks)
{
    frame->bytes[0] = type;
    frame_data(frame)[0] = drain();
    put_u64(frame_data(frame) + 1, ticks);
    return ok(frame, 9, true);
}

static reply run(mcud_frame *frame, uint32_t *stack_bytes)
{
    const uint32_t first = get_u32(frame_data(frame));
    const uint32_t count = get_u32(frame_data(frame) + 4);
    if (!steps_exist(first, count)) {
        return error(frame, ERROR_RANGE);
    }
    send_busy(frame);
    stack_paint();
    const uint64_t ticks = timing_run(mcud_deployed, first, first + count);
    *stack_bytes = stack_measure();
    return ticks_reply(frame, REQUEST_RUN, ticks);
}

static reply time_steps(mcud_frame *frame)
{
    uint8_t *const data = frame_data(frame);
    const uint32_t first = get_u32(data);
    const uint32_t count = data[4];
    if (!steps_exist(first, count) || count > MCUD_TIME_STEPS) {
        return error(frame, ERROR_RANGE);
    }
    send_busy(frame);
    const uint32_t empty = timing_empty();
    for (uint32_t i = 0; i < count; i++) {
        put_u32(data + 1 + 4 * i, timing_step(mcud_deployed, first + i, empty));
    }
    data[0] = drain();
    frame->bytes[0] = REQUEST_TIME;
    return ok(frame, 1 + 4 * count, true);
}

static reply stack(mcud_frame *frame, uint32_t stack_bytes)
{
    put_u32(frame_data(frame), stack_bytes);
    put_u32(frame_data(frame) + 4, (uint32_t)(hal_stack_top() - hal_stack_limit()));
    return ok(frame, 8, false);
}

static bool is_linked(mcud_kernel *kernel)
{
    for (uint32_t i = 0; i < mcud_kernel_count; i++) {
        if (mcud_kernels[i] == kernel) {
            return true;
        }
    }
    return false;
}

static reply call(mcud_frame *frame)
{
    const uint8_t *const data = frame_data(frame);
    const uint32_t first_row = get_u32(data + 5);
    const uint32_t end_row = get_u32(data + 9);
    const uint8_t *const image = arena_range(data[0], get_u32(data + 1), (uint32_t)sizeof(mcud_op));
    if (image == NULL || (uintptr_t)image % sizeof(void *) != 0) {
        return error(frame, ERROR_RANGE);
    }
    const mcud_op *const op = (const void *)image;
    if (first_row >= end_row || end_row > op->rows || end_row > INT32_MAX) {
        return error(frame, ERROR_RANGE);
    }
    if (!is_linked(op->kernel)) {
        return error(frame, ERROR_KERNEL);
    }
    const uint32_t repeat = get_u32(data + 13);
    send_busy(frame);
    return ticks_reply(frame, REQUEST_CALL, timing_call(op, (int32_t)first_row, (int32_t)end_row, repeat));
}

static reply kernels(mcud_frame *frame)
{
    uint8_t *const data = frame_data(frame);
    const uint32_t first = get_u32(data);
    if (first > mcud_kernel_count) {
        return error(frame, ERROR_RANGE);
    }
    const uint32_t left = mcud_kernel_count - first;
    const uint32_t count = left < MCUD_DATA_BYTES / 8 ? left : MCUD_DATA_BYTES / 8;
    for (uint32_t i = 0; i < count; i++) {
        put_u64(data + 8 * i, (uintptr_t)mcud_kernels[first + i]);
    }
    return ok(frame, 8 * count, false);
}

static reply guard(mcud_frame *frame)
{
    const uint8_t *const data = frame_data(frame);
    const uint32_t count = get_u32(data + 5);
    const uint8_t *const bytes = arena_range(data[0], get_u32(data + 1), count);
    if (bytes == NULL) {
        return error(frame, ERROR_RANGE);
    }
    return sanitizer_guard(bytes, count, data[9] != 0) ? ok(frame, 0, false) : error(frame, ERROR_UNSUPPORTED);
}

static reply chain(mcud_frame *frame)
{
#if MCUD_CHAIN
    uint32_t length = 0;
    bool keep = false;
    const uint8_t code = chain_request(frame, &length, &keep);
    return code == 0 ? ok(frame, length, keep) : error(frame, code);
#else
    return error(frame, ERROR_UNSUPPORTED);
#endif
}

#if MCUD_PARAMETERS
/* A PUSH must not be executed twice, so its reply is kept. */
static reply parameters(mcud_frame *frame)
{
    uint32_t length = 0;
    const bool keep = frame->bytes[0] == REQUEST_PUSH;
    const uint8_t code = parameter_request(frame, &length);
    return code == 0 ? ok(frame, length, keep) : error(frame, code);
}
#endif

/* Data bytes of a request of this type, 0xFF for an unknown type; WRITE, PUT and PUSH have these or more. */
static uint32_t length_of(uint8_t type)
{
#if MCUD_PARAMETERS
    static const uint8_t lengths[] = {0xFF, 4, 5, 7, 8, 5, 0, 17, 4, 10, 8, 4, 6, 0, 0, 0, 0, 6, 4, 0};
#else
    static const uint8_t lengths[] = {0xFF, 4, 5, 7, 8, 5, 0, 17, 4, 10, 8, 4, 6, 0, 0, 0};
#endif
    return type < sizeof lengths ? lengths[type] : 0xFF;
}

static reply execute(mcud_link *link)
{
    mcud_frame *const frame = &link->frame;
    const uint8_t type = frame->bytes[0];
    const uint32_t needed = length_of(type);
    if (needed == 0xFF) {
        return error(frame, ERROR_TYPE);
    }
    if (frame->length < needed || (frame->length > needed && type != REQUEST_WRITE && type != REQUEST_PUT && type != REQUEST_PUSH)) {
        return error(frame, ERROR_LENGTH);
    }
#if MCUD_PARAMETERS
    if (parameters_are_mixed() && (type == REQUEST_RUN || type == REQUEST_TIME)) {
        return error(frame, ERROR_NOT_NOW);
    }
#endif
#if MCUD_CHAIN
    if (chain_refuses(type)) {
        return error(frame, ERROR_NOT_NOW);
    }
#endif
    switch (type) {
    case REQUEST_HELLO:
        return hello(frame);
    case REQUEST_WRITE:
        return write_memory(frame);
    case REQUEST_READ:
        return read_memory(frame);
    case REQUEST_RUN:
        return run(frame, &link->stack_bytes);
    case REQUEST_TIME:
        return time_steps(frame);
    case REQUEST_STACK:
        return stack(frame, link->stack_bytes);
    case REQUEST_CALL:
        return call(frame);
    case REQUEST_KERNELS:
        return kernels(frame);
    case REQUEST_GUARD:
        return guard(frame);
    case REQUEST_RESET:
        mcud_deployed_reset();
        return ok(frame, 0, false);
#if MCUD_PARAMETERS
    case REQUEST_PARAMETERS:
    case REQUEST_PULL:
    case REQUEST_PUSH:
    case REQUEST_RESTORE:
        return parameters(frame);
#endif
    default:
        return chain(frame);
    }
}

static void refuse(mcud_frame *frame, uint8_t code)
{
    const reply answer = error(frame, code);
    frame_send(frame, answer.type, answer.length);
}

void command_answer(mcud_link *link)
{
    mcud_frame *const frame = &link->frame;
    const uint8_t seq = frame->bytes[1];
    if (frame->bytes[0] == REQUEST_HELLO) {
        link->synchronised = true;
        link->keeps = false;
    } else if (!link->synchronised) {
        refuse(frame, ERROR_UNSYNCHRONISED);
        return;
    } else if (seq == link->seq && frame->crc == link->crc) {
        if (link->keeps) {
            memcpy(frame_data(frame), link->kept, link->kept_length);
            frame_send(frame, link->kept_type, link->kept_length);
            return;
        }
    } else if (seq != (uint8_t)(link->seq + 1)) {
        refuse(frame, ERROR_SEQUENCE);
        return;
    }
    link->seq = seq;
    link->crc = frame->crc;
    const reply answer = execute(link);
    link->keeps = answer.keep;
    if (answer.keep) {
        link->kept_type = answer.type;
        link->kept_length = answer.length;
        memcpy(link->kept, frame_data(frame), answer.length);
    }
    frame_send(frame, answer.type, answer.length);
}
