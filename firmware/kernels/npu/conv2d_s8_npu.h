/* Convolution, depthwise convolution or fully connected layer by an Ethos-U beside the core, int8 or int16.
 *
 * in[0]    int8 or int16 [input_rows][input_cols][input_channels]
 * out      the same [rows][output_cols][output_channels]
 * scratch  that of the core's call
 *
 * The unit runs one command stream for output rows whose input rows are in at most two contiguous runs: `commands`,
 * then commands that depend on the rows. For a single output row, the two runs may have any distance from row to row;
 * three rows always fit this. If its input rows need more runs, the core's call computes it, with the same bits.
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
    int32_t window_rows; /* rows from the first to the last of a window */
    int32_t stride_rows;
    int32_t pad_top;
    int32_t blocks;       /* of the output: for 1 row, 2 rows, and so on; the last one for more */
    int32_t granule_rows; /* rows of a block are a multiple of it */
    int32_t output_row_bytes;
} mcud_conv2d_s8_npu_params;

mcud_kernel mcud_conv2d_s8_npu;

#endif
