#include "move_blocks.h"

#include <stddef.h>
#include <string.h>

/* In chunks that overlap nothing, from the end that is written over first: C libraries have a fast memcpy, but move
 * byte by byte. */
static void move(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (to < from) {
        const size_t most = (size_t)(from - to);
        for (size_t done = 0; done < bytes; done += most) {
            const size_t left = bytes - done;
            memcpy(to + done, from + done, left < most ? left : most);
        }
    } else if (to > from) {
        const size_t most = (size_t)(to - from);
        for (size_t left = bytes; left > 0;) {
            const size_t chunk = left < most ? left : most;
            left -= chunk;
            memcpy(to + left, from + left, chunk);
        }
    }
}

void mcud_move_blocks(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_move_blocks_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        move(mcud_row(op->out, row), mcud_row(op->in[0], row), params->bytes[row]);
    }
}
