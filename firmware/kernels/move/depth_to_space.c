#include "depth_to_space.h"

#include <string.h>

/* Copies the groups of one pixel, which are `step` bytes apart in its block. */
static uint8_t *copy_pixel(const mcud_depth_to_space_params *params, const uint8_t *from, int32_t step, uint8_t *to)
{
    for (int32_t group = 0; group < params->groups; group++) {
        memcpy(to, from, (size_t)params->run_bytes);
        from += step;
        to += params->run_bytes;
    }
    return to;
}

void mcud_depth_to_space(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_depth_to_space_params *params = op->params;
    const int32_t row_bytes = params->block_cols * params->run_bytes; /* of one group of a block */
    const int32_t step = params->block_rows * row_bytes;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t place = row + params->first_row;
        const uint8_t *blocks = mcud_row(op->in[0], place / params->block_rows);
        const uint8_t *line = blocks + place % params->block_rows * row_bytes;
        uint8_t *to = mcud_row(op->out, row);
        const uint8_t *block = line + params->first_col / params->block_cols * params->groups * step;
        int32_t col = params->first_col % params->block_cols; /* within its block */
        for (int32_t left = params->output_cols; left > 0; left--) {
            to = copy_pixel(params, block + col * params->run_bytes, step, to);
            if (++col == params->block_cols) {
                col = 0;
                block += params->groups * step;
            }
        }
    }
}
