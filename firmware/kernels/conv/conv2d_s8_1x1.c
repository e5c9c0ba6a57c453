#include "conv2d_s8_1x1.h"

#include "mcud_dot_s8.h"

/* Pixels of the input in the output's order, across rows. */
typedef struct {
    const mcud_op *op;
    const int8_t *pixel;
    int32_t row;
    int32_t end_row;
    int32_t cols_left; /* in this row, `pixel` included */
} pixel_walk;

static const int8_t *next_pixel(pixel_walk *walk)
{
    const mcud_conv2d_s8_1x1_params *params = walk->op->params;
    const int8_t *pixel = walk->pixel;
    walk->pixel = pixel + params->pixel_step;
    walk->cols_left--;
    if (walk->cols_left == 0 && ++walk->row < walk->end_row) {
        walk->pixel = mcud_row(walk->op->in[0], walk->row * params->stride_rows);
        walk->cols_left = params->dims.output_cols;
    }
    return pixel;
}

void mcud_conv2d_s8_1x1(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_1x1_params *params = op->params;
    const mcud_channels_s8 to = {
        .records = params->packed_weights,
        .channels = params->dims.output_channels,
        .groups = params->groups,
        .finish = {params->quant.zero_point, params->quant.left_shift, params->dims.output_channels},
    };
    const int32_t depth = params->dims.input_channels;
    pixel_walk walk = {op, mcud_row(op->in[0], first_row * params->stride_rows), first_row, end_row,
                       params->dims.output_cols};
    int16_t *x = mcud_row(op->scratch, first_row);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    int32_t left = (end_row - first_row) * params->dims.output_cols;
    for (; left > 4 || left == 3; left -= 3) { /* four are computed by twos */
        for (int32_t p = 0; p < 3; p++) {
            mcud_expand(x + 2 * p, next_pixel(&walk), depth, 3);
        }
        mcud_multiply_s8(&to, x, 3, y);
        y += 3 * to.channels;
    }
    for (; left > 1; left -= 2) {
        for (int32_t p = 0; p < 2; p++) {
            mcud_expand(x + 2 * p, next_pixel(&walk), depth, 2);
        }
        mcud_multiply_s8(&to, x, 2, y);
        y += 2 * to.channels;
    }
    if (left == 1) {
        mcud_expand(x, walk.pixel, depth, 2);
        mcud_multiply_s8(&to, x, 1, y);
        y += to.channels;
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
