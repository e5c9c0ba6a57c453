/* Starts transfers of blocks by an engine, mostly to another memory: see mcud_dma.h. Each transfer is a row of this
 * operator, which the tape runs as a step. await_transfers waits for it.
 *
 * A program has such an operator for each engine and pair of memories, after all others.
 *
 * in[0]    [transfers]: the places that are read
 * out      [transfers]: the places that are written; they overlap nothing of in[0]
 */
#ifndef MCUD_START_TRANSFERS_H
#define MCUD_START_TRANSFERS_H

#include "mcud.h"

typedef struct {
    const uint32_t *bytes; /* of each transfer, below 2^31; MCUD_ENDS_SOURCE may be added */
    uint32_t engine;       /* its number among the board's links */
} mcud_start_transfers_params;

mcud_kernel mcud_start_transfers;

#endif
