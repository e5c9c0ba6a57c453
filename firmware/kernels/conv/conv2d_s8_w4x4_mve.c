#include "conv2d_s8_w4x4_mve.h"

#include <stddef.h>
#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_winograd_vector.h"

/* A tile's results: those inside the output. */
typedef struct {
    int8_t *y;
    int32_t rows;
    int32_t cols;
} results;

static inline int32_t between(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* Finds the rows under tiles whose first row is `top`, NULL in the padding and after the first `needed` rows. */
static void find_rows(const mcud_op *op, int32_t top, int32_t needed, const int8_t *rows[MCUD_INPUT])
{
    const mcud_winograd_s8_params *params = op->params;
    for (int32_t i = 0; i < MCUD_INPUT; i++) {
        const int read = i < needed && top + i >= 0 && top + i < params->dims.input_rows;
        rows[i] = read ? mcud_row(op->in[0], top + i) : NULL;
    }
}

/* Transforms the input of a tile from column `left` on; columns outside the input come from the padding. */
static void transform(const mcud_winograd_s8_params *params, const int8_t *const rows[MCUD_INPUT], int32_t left,
                      int16_t *to)
{
    const int32_t depth = params->dims.input_channels;
    const int32_t groups = depth / MCUD_EIGHT;
    const int32_t first = between(-left, 0, MCUD_INPUT);
    const int32_t end = between(params->dims.input_cols - left, first, MCUD_INPUT);
    const int8_t *const padding = params->padding;
    const int8_t *const beside[MCUD_INPUT] = {padding, padding, padding, padding, padding, padding};
    const int8_t *from[MCUD_INPUT];
    for (int32_t i = 0; i < MCUD_INPUT; i++) {
        from[i] = rows[i] != NULL ? rows[i] + (left + first) * depth : padding;
    }
    if (first > 0) {
        mcud_transform_columns(beside, to, first, groups);
    }
    mcud_transform_columns(from, to + first * 2 * depth, end - first, groups);
    if (end < MCUD_INPUT) {
        mcud_transform_columns(beside, to + end * 2 * depth, MCUD_INPUT - end, groups);
    }
    mcud_transform_rows(to, groups);
}

/* Writes a tile's results of up to four channels from their sums, without results outside the output. */
static void finish(int32_t *sums, const int32_t *factors, const results *of, int32_t channels, mcud_four_results to)
{
    int8_t copy[MCUD_RESULTS * MCUD_RESULTS * MCUD_FOUR];
    if (of->rows == MCUD_RESULTS && of->cols == MCUD_RESULTS && channels == MCUD_FOUR) {
        to.y = of->y;
        mcud_finish_four(sums, factors, &to);
        return;
    }
    const mcud_four_results all = {copy, MCUD_FOUR, MCUD_RESULTS * MCUD_FOUR, to.zero};
    mcud_finish_four(sums, factors, &all);
    for (int32_t i = 0; i < of->rows; i++) {
        for (int32_t j = 0; j < of->cols; j++) {
            memcpy(of->y + i * to.row + j * to.pixel, copy + (i * MCUD_RESULTS + j) * MCUD_FOUR, (size_t)channels);
        }
    }
}

/* Computes all channels of `count` tiles. */
static void multiply(const mcud_winograd_s8_params *params, const int16_t *tiles, int32_t *sums, results *of,
                     int32_t count)
{
    const int32_t depth = params->dims.input_channels;
    const int32_t channels = params->dims.output_channels;
    const mcud_four_results to = {NULL, channels, params->dims.output_cols * channels,
                                  params->quant.zero_point * (MCUD_FACTORS == 2 ? 1 : 64)};
    const int32_t *weights = params->packed_weights;
    const int32_t *factors = params->factors;
    for (int32_t channel = 0; channel < channels; channel += MCUD_FOUR, factors += (1 + MCUD_FACTORS) * MCUD_FOUR) {
        mcud_multiply_eights(weights, tiles, sums, depth / MCUD_EIGHT);
        weights += MCUD_POSITIONS * depth * MCUD_FOUR / 2;
        for (int32_t tile = 0; tile < count; tile++, of++) {
            finish(sums + tile * MCUD_FOUR, factors, of, between(channels - channel, 1, MCUD_FOUR), to);
            of->y += MCUD_FOUR;
        }
        of -= count;
    }
}

void mcud_conv2d_s8_w4x4_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_w4x4_mve_params *params = op->params;
    const int32_t depth = params->dims.input_channels;
    const int32_t cols = params->dims.output_cols;
    const int32_t pitch = cols * params->dims.output_channels;
    int16_t *const tiles = mcud_row(op->scratch, first_row);
    int32_t *const sums = (int32_t *)(void *)(tiles + MCUD_POSITIONS * depth * MCUD_TILES);
    int8_t *const out = mcud_row(op->out, first_row);
    const int8_t *rows[MCUD_INPUT];
    results of[MCUD_TILES];
    int32_t count = 0;
    for (int32_t row = first_row; row < end_row; row += MCUD_RESULTS) {
        const int32_t rows_left = between(end_row - row, 1, MCUD_RESULTS);
        find_rows(op, row - params->pad_top, rows_left + 2, rows);
        for (int32_t col = 0; col < cols; col += MCUD_RESULTS) {
            transform(params, rows, col - params->pad_left, tiles + count * MCUD_EIGHT);
            of[count].y = out + (row - first_row) * pitch + col * params->dims.output_channels;
            of[count].rows = rows_left;
            of[count].cols = between(cols - col, 1, MCUD_RESULTS);
            count++;
            if (count == MCUD_TILES || (row + MCUD_RESULTS >= end_row && col + MCUD_RESULTS >= cols)) {
                multiply(params, tiles, sums, of, count);
                count = 0;
            }
        }
    }
    mcud_clip_s8(out, (end_row - first_row) * pitch, params->act.min, params->act.max);
}
