/* Convolution, depthwise convolution or dense layer by an Ethos-U beside the core, int8 or int16.
 *
 * in[0]    int8 or int16 [input_rows][input_cols][input_channels]
 * out      the same [rows][output_cols][output_channels]
 * scratch  that of the core's call
 *
 * The unit runs one command stream for output rows whose input rows lie in at most two runs: `commands`, then those
 * that the rows decide. The rows of a single window may also lie in two runs with any distance from row to row, as three
 * rows always do. Rows of a single window in more runs are computed by the core's call, with the same bits.
 */
#ifndef MCUD_CONV2D_S8_NPU_H
#define MCUD_CONV2D_S8_NPU_H

#include "mcud.h"

typedef struct {
    const uint32_t *commands;    /* [command_words]: the registers that are the same for all rows; then, for each
                                  * block, its most rows and the commands of its columns and place */
    const uint32_t *constants;   /* region 0, aligned to 16 bytes: records of the channels, then weights */
    const mcud_stage_call *core; /* [1]; NULL where no window needs it */
    int32_t command_words;       /* up to MCUD_NPU_MOST_COMMANDS of mcud_npu_stream.h */
    int32_t constant_bytes;
    int32_t operation; /* NPU_CONV or NPU_DEPTHWISE */
    int32_t input_rows;
    int32_t window_rows; /* that a window spans */
    int32_t stride_rows;
    int32_t pad_top;
    int32_t blocks;       /* of the output: for one row, for two, and so on; the last one for all others */
    int32_t granule_rows; /* rows of a block are a multiple of it */
    int32_t output_row_bytes;
} mcud_conv2d_s8_npu_params;

mcud_kernel mcud_conv2d_s8_npu;

#endif
