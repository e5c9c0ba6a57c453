/* Concatenation of columns or channels, or a slice of an input, by an Ethos-U beside the core, int8, requantised.
 *
 * in[i]    int8 [...][...]
 * out      int8 [rows][output_row_bytes]: of each input a part of columns and channels
 *
 * The unit runs one command stream for contiguous rows of an input.
 */
#ifndef MCUD_COPY_S8_NPU_H
#define MCUD_COPY_S8_NPU_H

#include "mcud.h"

typedef struct {
    const uint32_t *commands;  /* [inputs][command_words]: the registers that are the same for all rows */
    const int32_t *written_at; /* [inputs]: where in a row of the output an input's part begins */
    int32_t command_words;     /* up to MCUD_NPU_MOST_COMMANDS of mcud_npu_stream.h */
    int32_t inputs;
    int32_t operation; /* NPU_POOL with its mode */
    int32_t first_row; /* of the inputs, in row 0 of the output */
    int32_t read_at;   /* where in a row of the inputs their part begins */
    int32_t output_row_bytes;
} mcud_copy_s8_npu_params;

mcud_kernel mcud_copy_s8_npu;

#endif
