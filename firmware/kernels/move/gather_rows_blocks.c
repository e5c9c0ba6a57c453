#include "gather_rows_blocks.h"

#include "mcud_blocks_f32.h"
#include "mcud_nearest_row.h"

static void widen_row(const mcud_blocks_f32 *from, int32_t row, float *out)
{
    const int32_t blocks = (from->depth + from->block - 1) / from->block;
    const uint32_t *w = from->weights + row / 4 * mcud_block_words(from);
    const int32_t bits = from->bits;
    for (int32_t b = 0; b < blocks; b++) {
        const int32_t place = (row / 4 * blocks + b) * 4 + row % 4;
        const float scale = from->scale[place];
        const int32_t zero = from->zero != NULL ? from->zero[place] : 0;
        const int32_t end = from->depth - b * from->block < from->block ? from->depth : (b + 1) * from->block;
        for (int32_t i = b * from->block; i < end; i++) {
            const int32_t first = (4 * i + row % 4) * bits;
            out[i] = (float)(mcud_packed_integer(w[first / 32], first % 32, bits) - zero) * scale;
        }
    }
}

void mcud_gather_rows_blocks(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_gather_rows_blocks_params *params = op->params;
    const int32_t *indices = mcud_row(op->in[0], 0);
    const mcud_blocks_f32 from = {(const uint32_t *)params->weights, params->scale, params->zero,
                                  params->width,   params->block, params->bits};
    for (int32_t row = first_row; row < end_row; row++) {
        widen_row(&from, mcud_nearest_row(indices[row], params->rows), mcud_row(op->out, row));
    }
}
