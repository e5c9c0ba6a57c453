/* Computes an operator of one row and column, in pieces of some output channels. While it computes a piece, an engine
 * loads the constants of the next piece from flash (see mcud_dma.h), into the other half of a buffer in an arena.
 *
 * in, out, scratch: those of the operator
 */
#ifndef MCUD_STREAM_CONSTANTS_H
#define MCUD_STREAM_CONSTANTS_H

#include "mcud.h"

enum { MCUD_STREAMED_ARRAYS = 4 };

typedef struct {
    const mcud_stage_call *calls; /* of a piece in the first half, of one in the second, and of the last one */
    uint8_t *to;                  /* the two halves */
    const uint32_t *sizes;        /* [arrays][3]: bytes of a piece, bytes of the last piece, and the offset in a half */
    const void *from[MCUD_STREAMED_ARRAYS];
    uint32_t arrays;     /* in flash, 1 to 4 */
    uint32_t half_bytes; /* of a half of the buffer */
    uint32_t out_bytes;  /* of the results of a piece */
    uint32_t pieces;     /* 2 or more */
    uint32_t engine;     /* its number among the board's links */
} mcud_stream_constants_params;

mcud_kernel mcud_stream_constants;

#endif
