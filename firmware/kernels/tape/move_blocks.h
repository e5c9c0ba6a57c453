/* Moves blocks to other places in their arena, or to another arena. Each move is a row of this operator; its old and
 * new place may overlap.
 *
 * A program has one such operator, after all others, and a move is one of its steps. A tensor has a record for each set
 * of places of its blocks (t1_x: those of x after one move). An operator has a record for each set of such tensors.
 *
 * in[0]    [moves]: the old places
 * out      [moves]: the new places
 */
#ifndef MCUD_MOVE_BLOCKS_H
#define MCUD_MOVE_BLOCKS_H

#include "mcud.h"

typedef struct {
    const uint32_t *bytes; /* of each move, below 2^31; MCUD_ENDS_SOURCE may be added (mcud_dma.h) */
} mcud_move_blocks_params;

mcud_kernel mcud_move_blocks;

#endif
