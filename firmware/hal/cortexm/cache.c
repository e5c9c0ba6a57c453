/* The data cache of Cortex-M7: maintenance by address, line by line. Correct on a core whose cache is off, too. */
#include "mcud_cache.h"

#include "registers.h"

enum { LINE_BYTES = 32 };

static const uintptr_t DCIMVAC = 0xE000EF5Cu; /* invalidate by address */
static const uintptr_t DCCMVAC = 0xE000EF68u; /* clean by address */

/* Writes to a maintenance register the address of every line that has some of these bytes. */
static void by_lines(uintptr_t operation, const void *address, uint32_t bytes)
{
    const uintptr_t end = (uintptr_t)address + bytes;
    __asm volatile("dsb" ::: "memory");
    for (uintptr_t line = (uintptr_t)address & ~(uintptr_t)(LINE_BYTES - 1); line < end; line += LINE_BYTES) {
        reg_write(operation, (uint32_t)line);
    }
    __asm volatile("dsb\n\tisb" ::: "memory");
}

void mcud_cache_clean(const void *address, uint32_t bytes)
{
    by_lines(DCCMVAC, address, bytes);
}

void mcud_cache_invalidate(const void *address, uint32_t bytes)
{
    by_lines(DCIMVAC, address, bytes);
}
