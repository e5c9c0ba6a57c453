/* Sums, differences, products, curves and scaled values by an Ethos-U beside the core. Results equal those of the core
 * bit for bit.
 *
 * in[first]      int8 or int16 [rows][cols][channels]
 * in[1 - first]  a second operand, with the same sizes or sizes of 1, unless `constants` or `commands` have it
 * out            of the same type [rows][cols][channels]; may be an operand of its shape
 *
 * The unit runs one command stream for rows that are contiguous in all operands. The core computes rows whose result
 * overlaps an operand without the same address and size.
 */
#ifndef MCUD_ELEMENTWISE_S8_NPU_H
#define MCUD_ELEMENTWISE_S8_NPU_H

#include "mcud.h"

typedef struct {
    const uint32_t *commands;    /* [command_words]: the registers that are the same for all rows */
    const int8_t *constants;     /* region 0, aligned to 16 bytes: the second operand, records and weights, or NULL */
    const mcud_stage_call *core; /* [1] */
    int32_t command_words;       /* up to MCUD_NPU_MOST_COMMANDS of mcud_npu_stream.h */
    int32_t constant_bytes;
    int32_t operation; /* NPU_ELEMENTWISE with its mode, or NPU_DEPTHWISE */
    int32_t row_bytes;
    int32_t first;            /* the input that is the first operand */
    int32_t second_row_bytes; /* from a row of the second operand to the next; 0: one row serves all */
    int32_t second_bytes;     /* of a row of the second operand; 0: the commands contain its value, if any */
} mcud_elementwise_s8_npu_params;

mcud_kernel mcud_elementwise_s8_npu;

#endif
