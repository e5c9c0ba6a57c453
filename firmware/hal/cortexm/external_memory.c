/* Common functions of drivers of external memories. */
#include <stdint.h>

#include "hal_parts.h"
#include "mcud_hal.h"

#define HZ_PER_MHZ 1000000u

void pause_us(uint32_t us)
{
    const uint32_t start = hal_ticks();
    const uint32_t ticks = us * ((hal_ticks_hz() + HZ_PER_MHZ - 1u) / HZ_PER_MHZ);
    while (hal_ticks() - start < ticks) {
    }
}

/* The test word for `offset` from the origin, 0 or a power of two, so that addresses differ from the origin's in at
 * most one bit. */
static uint32_t sample(uint32_t offset, uint32_t flip)
{
    return (0x5A3CC3A5u ^ offset) ^ flip;
}

int32_t memory_answers(uintptr_t origin, uint32_t bytes)
{
    volatile uint32_t *const words = (volatile uint32_t *)origin;
    int32_t right = 1;
    for (uint32_t pass = 0; pass < 2u; pass++) { /* the second pass inverts every bit */
        const uint32_t flip = 0u - pass;
        words[0] = sample(0u, flip);
        for (uint32_t offset = 4u; offset < bytes; offset <<= 1) {
            words[offset / 4u] = sample(offset, flip);
        }
        right &= words[0] == sample(0u, flip);
        for (uint32_t offset = 4u; offset < bytes; offset <<= 1) {
            right &= words[offset / 4u] == sample(offset, flip);
        }
    }
    return right;
}
