/* Transfers between memories by engines that copy while the core computes: DMA controllers.
 *
 * The kernels have weak versions of the two functions below: start copies at once by the core, wait does nothing. So
 * every program links and computes the same, without a driver. A HAL or an application brings a driver by defining
 * both.
 *
 * What a driver promises:
 * - Transfers of one engine run in sequence, in the order of their starts. One that is queued begins when
 *   the one before has ended, whatever the core does meanwhile.
 * - What the core has written before the start is what is read; what the engine has written is what the core reads
 *   after the wait. So memory barriers are the driver's, and if the core has a data cache over these memories, the
 *   driver cleans the source before the transfer, and invalidates the target before it, and after it if the core
 *   fetches lines ahead. Blocks begin at lines of the cache and have them to themselves.
 * - Any size and any address will do, also odd ones; 0 bytes is a transfer, too.
 *
 * What the caller promises: source and target do not overlap. From the start to the wait nobody writes the source, and
 * nobody reads or writes the target; that holds for transfers that are queued on any engine as for the core. A step
 * that an interrupt runs starts no transfers.
 */
#ifndef MCUD_DMA_H
#define MCUD_DMA_H

#include <stdint.h>

/* Queues a transfer after those that were started before on this engine: its number among the board's links. Returns
 * at once, unless the queue is full: then it waits for the oldest transfer. */
void mcud_dma_start(uint32_t engine, void *to, const void *from, uint32_t size_bytes);

/* Returns when at most `pending` of the transfers that were started on this engine are unfinished: those started
 * last. */
void mcud_dma_wait(uint32_t engine, uint32_t pending);

/* In tables of bytes: nothing reads the source of this transfer, or the old place of this move, afterwards. Only the
 * software engine (hal/dma_soft.c) wants to know; for all others the mark is nothing, and costs nothing. */
#ifdef MCUD_DMA_SOFT
#define MCUD_ENDS_SOURCE 0x80000000u

/* The transfer that was started last on this engine ends its source. */
void mcud_dma_ends_source(uint32_t engine);

/* Writes over bytes that nobody may read. */
void mcud_dma_poison(void *at, uint32_t size_bytes);
#else
#define MCUD_ENDS_SOURCE 0u
#endif

#endif
