/* Copies between two memories by engine 0, as asked over the UART by single letters, and compares every byte. */
#include <stdint.h>
#include <string.h>

#include "await_transfers.h"
#include "line.h"
#include "mcud_dma.h"
#include "mcud_hal.h"
#include "start_transfers.h"

enum { ROOM = 20032, EDGE = 16 };

static uint8_t here[3][ROOM];
static uint8_t there[ROOM] MCUD_MEMORY(psram);

static uint8_t pattern(uint32_t seed, uint32_t i)
{
    const uint32_t mixed = (i + 1u) * 2654435761u + seed * 40503u;
    return (uint8_t)(mixed >> 24);
}

static void fill(uint8_t *bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < ROOM; i++) {
        bytes[i] = pattern(seed, i);
    }
}

/* Bytes from `to` on, taken from another pattern's `from` on; around them the array's own pattern. */
static uint32_t wrong(const uint8_t *bytes, uint32_t own, uint32_t to, uint32_t other, uint32_t from, uint32_t size)
{
    uint32_t count = 0;
    for (uint32_t i = to < EDGE ? 0u : to - EDGE; i < to + size + EDGE && i < ROOM; i++) {
        const uint8_t expected = i >= to && i < to + size ? pattern(other, i - to + from) : pattern(own, i);
        count += bytes[i] != expected;
    }
    return count;
}

/* There and back, both queued at once where `waits` is 0. */
static uint32_t round_trip(uint32_t from, uint32_t over, uint32_t to, uint32_t size, uint32_t waits)
{
    fill(here[0], 0);
    fill(here[1], 1);
    fill(there, 2);
    mcud_dma_start(0, there + over, here[0] + from, size);
    if (waits) {
        mcud_dma_wait(0, 0);
    }
    mcud_dma_start(0, here[1] + to, there + over, size);
    mcud_dma_wait(0, 0);
    return wrong(here[0], 0, 0, 0, 0, size) + wrong(there, 2, over, 0, from, size) + wrong(here[1], 1, to, 0, from, size);
}

/* More transfers than the queue has room for, of 0 to 300 bytes; then waits that leave fewer and fewer. */
static uint32_t burst(uint32_t count)
{
    uint32_t at = 0;
    uint32_t bad = 0;
    fill(here[0], 0);
    fill(there, 2);
    for (uint32_t i = 0; i < count; i++) {
        mcud_dma_start(0, there + at, here[0] + at, i * 7u % 301u);
        at += i * 7u % 301u;
    }
    for (uint32_t pending = count; pending > 0u; pending--) {
        mcud_dma_wait(0, pending - 1u);
    }
    bad += wrong(there, 2, 0, 0, 0, at);
    return bad;
}

/* What is wrong of three transfers that nobody waited for: only the interrupt goes on with them. */
static uint32_t by_interrupt(void)
{
    fill(here[0], 0);
    fill(there, 2);
    for (uint32_t i = 0; i < 3u; i++) {
        mcud_dma_start(0, there + 6000u * i, here[0] + 6000u * i + (i & 1u), 6000);
    }
    uint32_t bad = 0;
    for (uint32_t at = 0; at < 18000u; at++) {
        bad += there[at] != pattern(0, at + (at / 6000u & 1u));
    }
    mcud_dma_wait(0, 0);
    return bad;
}

/* Two blocks by the kernels of the tape; what is wrong of them, and the ticks of both starts and the wait. */
static uint32_t by_tape(uint32_t *ticks)
{
    static const mcud_offset from[] = {1, 2000};
    static const mcud_offset to[] = {3000, 0};
    static const uint32_t bytes[] = {7000, MCUD_ENDS_SOURCE | 9000u};
    static const uint16_t pending[] = {0};
    const mcud_tensor old = {here[0], from, 0, 1, 0};
    const mcud_tensor new = {there, to, 0, 1, 0};
    const mcud_tensor *const in[] = {&old};
    const mcud_start_transfers_params started = {bytes, 0};
    const mcud_await_transfers_params awaited = {pending, 0};
    const mcud_op start = {mcud_start_transfers, &started, in, &new, NULL, 2, 1};
    const mcud_op await = {mcud_await_transfers, &awaited, NULL, NULL, NULL, 1, 1};
    fill(here[0], 0);
    fill(there, 2);
    const uint32_t before = hal_ticks();
    start.kernel(&start, 0, 1);
    start.kernel(&start, 1, 2);
    await.kernel(&await, 0, 1);
    *ticks = hal_ticks() - before;
    return wrong(there, 2, 0, 0, 8000, 9000) + wrong(there, 2, 12000, 0, 4, 7000);
}

/* Ticks of a start, of the wait for it, and of the same copy by the core. */
static void time_one(uint32_t size)
{
    const uint32_t before = hal_ticks();
    mcud_dma_start(0, there, here[0], size);
    const uint32_t started = hal_ticks();
    mcud_dma_wait(0, 0);
    const uint32_t ended = hal_ticks();
    memcpy(there, here[0], size);
    const uint32_t copied = hal_ticks();
    send_word(started - before);
    send_word(ended - started);
    send_word(copied - ended);
}

int main(void)
{
    hal_init();
    for (;;) {
        switch (receive()) {
        case 'R': {
            const uint32_t from = receive_word();
            const uint32_t over = receive_word();
            const uint32_t to = receive_word();
            const uint32_t size = receive_word();
            send_word(round_trip(from, over, to, size, receive_word()));
            break;
        }
        case 'B':
            send_word(burst(receive_word()));
            break;
        case 'I':
            send_word(by_interrupt());
            break;
        case 'K': {
            uint32_t ticks = 0;
            send_word(by_tape(&ticks));
            send_word(ticks);
            break;
        }
        case 'T':
            time_one(receive_word());
            break;
        default:
            hal_uart_write((const uint8_t *)"?", 1);
        }
    }
}
