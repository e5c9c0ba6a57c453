/* The driver of the PL081, whose emulated transfers take no time, with the time that they take on a board.
 *
 * Transfers follow each other: each ends PACED_TICKS_PER_KIB for 1,024 bytes after the later of its start and the end
 * before it. A wait returns no earlier, and neither does a start that finds the queue full.
 */
#include <stdint.h>

#include "mcud_hal.h"

#define mcud_dma_start instant_start
#define mcud_dma_wait instant_wait
#include PACED_DRIVER
#undef mcud_dma_start
#undef mcud_dma_wait

static uint32_t ends[MCUD_DMA_ENGINES][QUEUE];
static uint32_t begun[MCUD_DMA_ENGINES];

static void wait_until(uint32_t end)
{
    while ((int32_t)(hal_ticks() - end) < 0) {
    }
}

void mcud_dma_start(uint32_t engine, void *to, const void *from, uint32_t size_bytes)
{
    const uint32_t number = begun[engine]++;
    const uint32_t before = ends[engine][(number + QUEUE - 1u) % QUEUE];
    if (number >= QUEUE) {
        wait_until(ends[engine][number % QUEUE]);
    }
    instant_start(engine, to, from, size_bytes);
    const uint32_t now = hal_ticks();
    const uint32_t begin = number > 0u && (int32_t)(before - now) > 0 ? before : now;
    ends[engine][number % QUEUE] = begin + size_bytes * PACED_TICKS_PER_KIB / 1024u;
}

void mcud_dma_wait(uint32_t engine, uint32_t pending)
{
    instant_wait(engine, pending);
    if (begun[engine] > pending) {
        wait_until(ends[engine][(begun[engine] - pending - 1u) % QUEUE]);
    }
}
