#include "move_blocks.h"

#include <stddef.h>
#include <string.h>

#include "mcud_dma.h"

/* Copies chunks that do not overlap, from the end that is overwritten first: C libraries have a fast memcpy, but a
 * memmove byte by byte. In different memories, places are further apart than a block is long: one chunk. */
static void move(uint8_t *to, const uint8_t *from, size_t bytes)
{
    const uintptr_t target = (uintptr_t)to;
    const uintptr_t source = (uintptr_t)from;
    if (target < source) {
        const size_t most = (size_t)(source - target);
        for (size_t done = 0; done < bytes; done += most) {
            const size_t left = bytes - done;
            memcpy(to + done, from + done, left < most ? left : most);
        }
    } else if (target > source) {
        const size_t most = (size_t)(target - source);
        for (size_t left = bytes; left > 0;) {
            const size_t chunk = left < most ? left : most;
            left -= chunk;
            memcpy(to + left, from + left, chunk);
        }
    }
}

#ifdef MCUD_DMA_SOFT
/* Poisons the bytes of the old place outside of the new place. */
static void leave(uint8_t *old, const uint8_t *new, uint32_t bytes)
{
    const uintptr_t source = (uintptr_t)old;
    const uintptr_t target = (uintptr_t)new;
    const uintptr_t apart = target < source ? source - target : target - source;
    const uint32_t left = apart < bytes ? (uint32_t)apart : bytes;
    mcud_dma_poison(target < source ? old + (bytes - left) : old, left);
}
#endif

void mcud_move_blocks(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_move_blocks_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const uint32_t bytes = params->bytes[row] & ~MCUD_ENDS_SOURCE;
        move(mcud_row(op->out, row), mcud_row(op->in[0], row), bytes);
#ifdef MCUD_DMA_SOFT
        if (bytes != params->bytes[row]) {
            leave(mcud_row(op->in[0], row), mcud_row(op->out, row), bytes);
        }
#endif
    }
}
