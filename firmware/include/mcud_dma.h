/* Transfers between memories by engines that copy while the core computes: DMA controllers.
 *
 * The kernels have weak versions of the two functions below: the core copies in mcud_dma_start, and mcud_dma_wait does
 * nothing. So every program links and computes the same without a driver. A HAL or an application brings a driver by
 * defining both.
 *
 * What a driver promises:
 * - Transfers of one engine run in sequence, in the order of their starts. A queued transfer begins when
 *   the previous one has ended, whatever the core does meanwhile.
 * - The engine reads what the core wrote before the start. After the wait, the core reads what the engine wrote. So
 *   the driver has the memory barriers. If the core has a data cache over these memories, the driver cleans the source
 *   and invalidates the target before the transfer; it invalidates the target after the transfer, too, if the core
 *   fetches lines ahead. Every block begins at a cache line and shares no line.
 * - Any size and any address is permitted, also odd ones and a size of 0 bytes.
 *
 * What the caller promises: source and target do not overlap. From the start to the wait nobody writes the source, and
 * nobody reads or writes the target: neither the core nor a transfer that is queued on any engine. A step that an
 * interrupt runs starts no transfers.
 */
#ifndef MCUD_DMA_H
#define MCUD_DMA_H

#include <stdint.h>

/* Queues a transfer on an engine, after the earlier ones; `engine` is its number among the board's links. Returns at
 * once; only if the queue is full, it waits for the oldest transfer. */
void mcud_dma_start(uint32_t engine, void *to, const void *from, uint32_t size_bytes);

/* Returns when all transfers of this engine have finished, except the `pending` ones that were started last. */
void mcud_dma_wait(uint32_t engine, uint32_t pending);

/* A flag in the byte counts of transfers and moves: nothing reads their source afterwards. Only the software engine
 * (hal/dma_soft.c) uses it, to find plans that read the source nevertheless; elsewhere it is 0. */
#ifdef MCUD_DMA_SOFT
#define MCUD_ENDS_SOURCE 0x80000000u

/* Nothing reads the source of the transfer that was started last on this engine, after that transfer. */
void mcud_dma_ends_source(uint32_t engine);

/* Writes over bytes that nobody may read. */
void mcud_dma_poison(void *at, uint32_t size_bytes);
#else
#define MCUD_ENDS_SOURCE 0u
#endif

#endif
