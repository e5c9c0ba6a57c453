/* Runs requests from the command line through the kernels that start and await transfers, in an arena of 64 bytes that
 * count up, and prints the arena after each. s N: transfer N starts; w N: wait N; m N: move N by the core. */
#include <stdio.h>
#include <stdlib.h>

#include "await_transfers.h"
#include "mcud_dma.h"
#include "move_blocks.h"
#include "start_transfers.h"

static uint8_t fast[32];
static uint8_t slow[32];

static const mcud_offset from[] = {0, 8, 21};
static const mcud_offset to[] = {3, 16, 24};
static const uint32_t bytes[] = {MCUD_ENDS_SOURCE | 5u, 8u, MCUD_ENDS_SOURCE | 0u};
static const uint16_t pending[] = {0, 1, 2};

static void show(void)
{
    for (uint32_t i = 0; i < sizeof fast; i++) {
        printf("%02x", fast[i]);
    }
    printf(" ");
    for (uint32_t i = 0; i < sizeof slow; i++) {
        printf("%02x", slow[i]);
    }
    printf("\n");
}

int main(int count, char **words)
{
    const mcud_tensor old = {fast, from, 0, 1, 0};
    const mcud_tensor new = {slow, to, 0, 1, 0};
    const mcud_tensor *const in[] = {&old};
    const mcud_start_transfers_params started = {bytes, 1};
    const mcud_await_transfers_params awaited = {pending, 1};
    const mcud_move_blocks_params moved = {bytes};
    const mcud_op start = {mcud_start_transfers, &started, in, &new, NULL, 3, 1};
    const mcud_op await = {mcud_await_transfers, &awaited, NULL, NULL, NULL, 3, 1};
    const mcud_op move = {mcud_move_blocks, &moved, in, &new, NULL, 3, 1};
    for (uint8_t i = 0; i < 32; i++) {
        fast[i] = i;
        slow[i] = (uint8_t)(i + 32u);
    }
    for (int i = 1; i + 1 < count; i += 2) {
        const int32_t row = atoi(words[i + 1]);
        const mcud_op *op = words[i][0] == 's' ? &start : words[i][0] == 'w' ? &await : &move;
        op->kernel(op, row, row + 1);
        show();
    }
    return 0;
}
