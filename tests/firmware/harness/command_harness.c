/* The device's side of the protocol: requests of any content, in and out of order, some twice. Every request is
 * answered by one intact frame (and a BUSY before it), nothing is executed twice, no record or range that a
 * request names leads out of the arena or the schedule. */
#include <string.h>

#include "command.h"
#include "harness.h"
#include "line.h"
#include "mcud_hal.h"
#include "sanitizer.h"
#include "timing.h"

enum { REQUESTS = 6, ROWS = 5, STEPS = 5, ARENA_BYTES = 512 };

static mcud_kernel known;
static uint32_t executed;

static union {
    void *align;
    uint8_t bytes[ARENA_BYTES];
} arena;

static const mcud_offset offsets[ROWS] = {0, 1, 2, 3, 4};
static const mcud_tensor rows = {arena.bytes, offsets, 8, 1, 0};
static const mcud_op ops[] = {{known, NULL, NULL, &rows, NULL, ROWS, 1}};
static const mcud_code schedule[STEPS] = {0, 1, 2, 3, 4};
static const mcud_arena arenas[] = {{arena.bytes, sizeof arena.bytes}};
static const mcud_model model = {ops, schedule, arenas, NULL, STEPS, 3, 1};
const mcud_model *const mcud_deployed = &model;

void mcud_deployed_reset(void)
{
}

mcud_kernel *const mcud_kernels[] = {known};
const uint32_t mcud_kernel_count = 1;

static void known(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    require(first_row >= 0 && first_row < end_row && (uint32_t)end_row <= op->rows);
    if (op == ops) {
        *(uint8_t *)mcud_row(op->out, first_row) = 1;
    }
    executed++;
}

/* In the place of timing.c, whose loops are as long as the request says. */
uint64_t timing_run(const mcud_model *deployed, uint32_t first, uint32_t end)
{
    for (uint32_t step = first; step < end; step++) {
        mcud_step(deployed, step);
    }
    return end - first;
}

uint32_t timing_empty(void)
{
    return 0;
}

uint32_t timing_step(const mcud_model *deployed, uint32_t step, uint32_t empty)
{
    mcud_step(deployed, step);
    return empty;
}

uint64_t timing_call(const mcud_op *op, int32_t first_row, int32_t end_row, uint32_t repeat)
{
    for (uint32_t i = 0; i < repeat && i < 3; i++) {
        op->kernel(op, first_row, end_row);
    }
    return repeat;
}

void stack_paint(void)
{
}

uint32_t stack_measure(void)
{
    return 1;
}

int32_t hal_uart_read(void)
{
    return -1;
}

uint32_t hal_clock_hz(void)
{
    return 1;
}

uint32_t hal_ticks_hz(void)
{
    return 1;
}

uint8_t *hal_stack_limit(void)
{
    return arena.bytes;
}

uint8_t *hal_stack_top(void)
{
    return arena.bytes + ARENA_BYTES;
}

/* Small as a rule, so that ranges and rows are often right. */
static uint32_t number(void)
{
    switch (draw(8)) {
    case 0:
        return draw(UINT32_MAX);
    case 1:
        return ARENA_BYTES - draw(16);
    default:
        return draw(ROWS + 2);
    }
}

static void draw_request(mcud_frame *request, uint8_t seq)
{
    static const uint8_t lengths[] = {0, 4, 9, 7, 8, 5, 0, 17, 4, 10, 3};
    const uint32_t type = draw(sizeof lengths);
    const bool odd = draw(8) == 0;
    const uint32_t length = odd ? draw(MCUD_DATA_BYTES + 1) : lengths[type];
    uint8_t *const data = frame_data(request);
    for (uint32_t i = 0; i < length; i++) {
        data[i] = (uint8_t)draw(256);
    }
    const uint32_t first = type >= REQUEST_RUN && type <= REQUEST_TIME ? 0 : 1;
    for (uint32_t at = first; at + 4 <= length && at < 17 && !odd; at += 4) {
        put_u32(data + at, number());
    }
    if (first == 1 && length > 0) {
        data[0] = (uint8_t)(draw(8) == 0);
    }
    request->bytes[1] = (uint8_t)(draw(8) == 0 ? draw(256) : seq);
    line.count = 0;
    frame_send(request, (uint8_t)type, length);
}

/* An operator record in the arena that CALL may find: most are as the host would write them. */
static void draw_record(void)
{
    mcud_op op = ops[0];
    op.rows = number();
    op.kernel = draw(4) == 0 ? (mcud_kernel *)0 : known;
    memcpy(arena.bytes, &op, sizeof op);
}

/* Sends what is on the line to the device and looks at what comes back. */
static void answer(mcud_link *device, const mcud_frame *request)
{
    static mcud_frame reply;
    memset(&reply, 0, sizeof reply);
    const uint32_t sent = line.count;
    require(line_receive(&device->frame, 0) == sent);
    command_answer(device);
    sanitizer_guard(arena.bytes, ARENA_BYTES, false); /* what GUARD forbids is forbidden to kernels only */
    uint32_t at = line_receive(&reply, sent);
    require(at > sent && reply.bytes[1] == request->bytes[1]);
    if (reply.bytes[0] == REPLY_BUSY) {
        require(reply.length == 0);
        at = line_receive(&reply, at);
    }
    require(at == line.count && reply.bytes[1] == request->bytes[1] && reply.length <= MCUD_DATA_BYTES);
    require(reply.bytes[0] == (request->bytes[0] | REPLY) || (reply.bytes[0] == REPLY_ERROR && reply.length == 1));
}

void harness(void)
{
    static mcud_link device;
    static mcud_frame request;
    memset(&device, 0, sizeof device);
    memset(&request, 0, sizeof request);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (draw(4) == 0) {
            draw_record();
        }
        draw_request(&request, (uint8_t)(device.seq + 1));
        answer(&device, &request);
        const bool hello = request.bytes[0] == REQUEST_HELLO;
        if (draw(3) == 0 && device.synchronised && device.seq == request.bytes[1] && !hello) {
            const uint32_t before = executed;
            line.count = 0;
            frame_send(&request, request.bytes[0], request.length);
            answer(&device, &request);
            require(executed == before);
        }
    }
}
