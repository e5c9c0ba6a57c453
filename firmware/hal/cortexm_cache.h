/* Caches and memory protection of Cortex-M7, for chips whose firmware uses them. */
#ifndef MCUD_CORTEXM_CACHE_H
#define MCUD_CORTEXM_CACHE_H

#include <stdint.h>

#include "hal_parts.h"

/* Closes 0x60000000 to 0xDFFFFFFF, the range of external memory. Where no memory answers, a core that reads ahead there
 * would wait for ever. */
void external_memory_off(void);

/* Closes the same range except flash of 2^log2_bytes bytes at `origin`, which is read and executed through the
 * caches. */
void external_memory_only(uintptr_t origin, uint32_t log2_bytes);

/* How the core may use external RAM: not at all, each access as the program makes it, or through the data cache. */
typedef enum { EXTERNAL_CLOSED, EXTERNAL_UNCACHED, EXTERNAL_CACHED } external_access;

/* Gives the core this access to RAM of 2^log2_bytes bytes at `origin`, but no execution. The cache writes back. Call it
 * after external_memory_off() or external_memory_only(). */
void external_memory_use(uintptr_t origin, uint32_t log2_bytes, external_access access);

/* Opens external RAM that its driver has started, through the data cache; one that does not answer stays closed. */
static inline void external_memory_try(uintptr_t origin, uint32_t log2_bytes)
{
    external_memory_use(origin, log2_bytes, EXTERNAL_UNCACHED);
    external_memory_use(origin, log2_bytes,
                        memory_answers(origin, 1u << log2_bytes) ? EXTERNAL_CACHED : EXTERNAL_CLOSED);
}

/* Empties and enables the instruction cache and the data cache. */
void caches_on(void);

#endif
