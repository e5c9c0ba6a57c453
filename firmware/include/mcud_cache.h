/* Data caches, where several units share memory. The kernels have weak versions that do nothing, which is right for
 * units without a cache. A HAL or an application brings its own: for a Cortex-M7, CMSIS has SCB_CleanDCache_by_Addr and
 * SCB_InvalidateDCache_by_Addr. No step writes back lines of dead tensors, so memory that several units write must be
 * mapped write-through. A block that one unit hands to another begins at a cache line and shares no line. */
#ifndef MCUD_CACHE_H
#define MCUD_CACHE_H

#include <stdint.h>

/* Writes this unit's cached copy of these bytes to memory. */
void mcud_cache_clean(const void *address, uint32_t bytes);

/* Drops this unit's cached copy of these bytes without writing it to memory. */
void mcud_cache_invalidate(const void *address, uint32_t bytes);

#endif
