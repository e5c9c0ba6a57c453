/* Data caches, where several units share memory. The kernels have weak versions that do nothing, which is right for
 * units without a cache. A HAL or an application brings its own: for a Cortex-M7, CMSIS has SCB_CleanDCache_by_Addr and
 * SCB_InvalidateDCache_by_Addr. No step writes back lines of tensors that are dead, so memory that another unit writes,
 * too, is mapped write-through. Blocks that are handed over begin at a line of the cache and have their lines to
 * themselves. */
#ifndef MCUD_CACHE_H
#define MCUD_CACHE_H

#include <stdint.h>

/* Writes what this unit's cache holds of these bytes to memory. */
void mcud_cache_clean(const void *address, uint32_t bytes);

/* Forgets what this unit's cache holds of these bytes; they are not written to memory. */
void mcud_cache_invalidate(const void *address, uint32_t bytes);

#endif
