/* out = a + b or a - b by an Ethos-U beside the core, int8, rounded as add_s8_tflite rounds.
 *
 * in[0]    int8 [rows][cols][channels]
 * in[1]    the same
 * out      the same; may be an operand
 *
 * The unit runs one command stream for rows that lie one after another in both operands. The core computes those whose
 * result lies over a part of an operand, but not in its place.
 */
#ifndef MCUD_ADD_S8_NPU_H
#define MCUD_ADD_S8_NPU_H

#include "mcud.h"

typedef struct {
    const uint32_t *commands;    /* [command_words]: the registers that are the same for all rows */
    const mcud_stage_call *core; /* [1] */
    int32_t command_words;       /* up to MCUD_NPU_MOST_COMMANDS of mcud_npu_stream.h */
    int32_t operation;           /* NPU_ELEMENTWISE with its mode */
    int32_t row_bytes;
} mcud_add_s8_npu_params;

mcud_kernel mcud_add_s8_npu;

#endif
