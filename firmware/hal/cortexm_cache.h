/* Caches and memory protection of Cortex-M7, for chips whose firmware uses them. */
#ifndef MCUD_CORTEXM_CACHE_H
#define MCUD_CORTEXM_CACHE_H

#include <stdint.h>

/* Nothing answers at 0x60000000 to 0xDFFFFFFF, where external memory would be: without a rule against it the core may
 * read ahead there and never get an answer. */
void external_memory_off(void);

/* The same, but for flash of 2^log2_bytes bytes there, which is read and executed through the caches. */
void external_memory_only(uintptr_t origin, uint32_t log2_bytes);

/* Instruction and data cache, emptied first. */
void caches_on(void);

#endif
