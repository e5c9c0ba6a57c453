/* Engines in software, for tests: they copy a block as late, or as early, as a driver may, and overwrite bytes that
 * nobody may read. A program that reads a block before its wait, or the block's old place afterwards, computes wrong
 * results.
 *
 * MCUD_DMA_SOFT says when a transfer is copied: 1 at its start, 2 at the wait that requires it, 3 one half at each.
 * Until it is copied, the target has poison. A wait finishes no more transfers than it must.
 */
#include <string.h>

#include "mcud_dma.h"

#if !defined(MCUD_DMA_SOFT) || MCUD_DMA_SOFT < 1 || MCUD_DMA_SOFT > 3
#error "MCUD_DMA_SOFT is 1 (copy at the start), 2 (at the wait) or 3 (half and half)"
#endif

enum { ENGINES = 4, QUEUE = 32, AT_START = 1, AT_WAIT = 2 };

typedef struct {
    uint8_t *to;
    const uint8_t *from;
    uint32_t size_bytes;
    uint32_t copied;
    uint8_t *ended; /* the source, if nothing reads it after the wait */
} transfer;

typedef struct {
    transfer queue[QUEUE]; /* a ring; the oldest unfinished one is at `oldest` */
    uint32_t oldest;
    uint32_t unfinished;
} engine_state;

static engine_state engines[ENGINES];

/* Four bytes of poison are a NaN with the address in its payload: it spreads through float arithmetic, and as integers
 * it is never small. */
void mcud_dma_poison(void *at, uint32_t size_bytes)
{
    uint8_t *bytes = at;
    for (uint32_t i = 0; i < size_bytes; i++) {
        const uintptr_t address = (uintptr_t)(bytes + i);
        const uint32_t noise = (uint32_t)(address >> 2) * 2654435761u;
        const uint8_t word[4] = {(uint8_t)(noise >> 24) | 0x80u, (uint8_t)(noise >> 16) | 0x80u, 0xE5u, 0x7Fu};
        bytes[i] = word[address % 4u];
    }
}

static void copy_to(transfer *one, uint32_t end)
{
    memcpy(one->to + one->copied, one->from + one->copied, end - one->copied);
    one->copied = end;
}

static transfer finish_oldest(engine_state *engine)
{
    transfer *one = &engine->queue[engine->oldest];
    copy_to(one, one->size_bytes);
    engine->oldest = (engine->oldest + 1u) % QUEUE;
    engine->unfinished--;
    return *one;
}

void mcud_dma_start(uint32_t engine, void *to, const void *from, uint32_t size_bytes)
{
    engine_state *state = &engines[engine % ENGINES];
    if (state->unfinished == QUEUE) {
        (void)finish_oldest(state); /* no poison for its source, which may be read until its wait */
    }
    transfer *one = &state->queue[(state->oldest + state->unfinished) % QUEUE];
    *one = (transfer){to, from, size_bytes, 0u, NULL};
    state->unfinished++;
    copy_to(one, MCUD_DMA_SOFT == AT_START ? size_bytes : MCUD_DMA_SOFT == AT_WAIT ? 0u : size_bytes / 2u);
    mcud_dma_poison(one->to + one->copied, size_bytes - one->copied);
}

void mcud_dma_ends_source(uint32_t engine)
{
    engine_state *state = &engines[engine % ENGINES];
    transfer *one = &state->queue[(state->oldest + state->unfinished - 1u) % QUEUE];
    one->ended = (uint8_t *)(uintptr_t)one->from; /* the source is in an arena, and not a constant */
}

void mcud_dma_wait(uint32_t engine, uint32_t pending)
{
    engine_state *state = &engines[engine % ENGINES];
    while (state->unfinished > pending) {
        const transfer one = finish_oldest(state);
        if (one.ended != NULL) {
            mcud_dma_poison(one.ended, one.size_bytes);
        }
    }
}
