/* Runs command streams of an Ethos-U, each for several consecutive steps of the model; a row of this operator is one
 * stream.
 *
 * in[i]  the arena of stream_arenas[i], whose first row is its first byte
 *
 * The words address arenas, not rows of a tensor. Four words for Arm's core driver precede each stream.
 */
#ifndef MCUD_RUN_STREAMS_NPU_H
#define MCUD_RUN_STREAMS_NPU_H

#include "mcud.h"

typedef struct {
    uint32_t region;
    uint32_t bytes;
} mcud_stream_arena;

typedef struct {
    const uint32_t *words;           /* of all streams, aligned to 16 bytes */
    const uint32_t *begins;          /* [rows + 1]: the first word of each stream's payload, a multiple of 4; the end */
    const uint32_t *constants;       /* region 0, aligned to 16 bytes */
    const mcud_stream_arena *arenas; /* [arenas] */
    int32_t constant_bytes;
    int32_t arenas_count;
} mcud_run_streams_npu_params;

mcud_kernel mcud_run_streams_npu;

#endif
