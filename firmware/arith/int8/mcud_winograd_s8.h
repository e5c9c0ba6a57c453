/* Winograd's minimal filtering of 3x3 windows with stride 1, exact in integers: tiles of R x 4 results, R 1, 2 or 4.
 *
 * All steps are linear and computed modulo 2^32, on transforms of integers that fit 16 bits. Sums end as S times those
 * of the direct convolution: S is 24, 48 or 576. A product with the inverse of its odd factor modulo 2^32 leaves 2^s
 * times them, s 3, 4 or 6, which fits an int32_t: the code generator has checked the layer. With R = 1, three rows of
 * input are transformed along the columns only, and summed up like depth.
 *
 * Two tiles by four channels are multiplied at a time. Layouts:
 *
 *   input    int16_t [positions][rows][depth / 2][2 tiles][2]; positions are R + 2 (1 for R = 1) by 6, rows are 3 for
 *            R = 1, else 1; a pair has channels 4k and 4k + 2, the next one 4k + 1 and 4k + 3
 *   weights  int16_t [fours of channels][positions][rows][depth / 2][4 channels][2]
 *   sums     int32_t [positions][4 channels][2 tiles]
 *
 * Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016; points 0, +-1, +-2, infinity.
 */
#ifndef MCUD_WINOGRAD_S8_H
#define MCUD_WINOGRAD_S8_H

#include "mcud.h"
#include "mcud_clip_s8.h"
#include "mcud_params.h"
#include "mcud_simd.h"

typedef struct {
    const int32_t *packed_weights;
    const int32_t *factors; /* [output channels, filled up to fours][2]: S * bias, multiplier */
    const int8_t *padding;  /* a pixel of zero points */
    mcud_conv_dims dims;    /* input_channels is a multiple of 4 */
    int32_t pad_top;
    int32_t pad_left;
    mcud_channel_quant quant; /* left_shift is 0 */
    mcud_act_s8 act;
} mcud_winograd_s8_params;

/* A transform computes one lane at a time: two channels of a group of four, or one of them. */
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_winograd_dsp.h"
#else
#include "mcud_winograd_c.h"
#endif

#if defined(__GNUC__)
#define MCUD_INLINE __attribute__((always_inline)) static inline
#else
#define MCUD_INLINE static inline
#endif

enum { MCUD_TILE_COLS = 4, MCUD_TILES = 2, MCUD_FOUR = 4 };

/* Constants of a tile's height R. */
#define MCUD_INPUT_ROWS(r) ((r) + 2)
#define MCUD_POSITION_ROWS(r) ((r) == 1 ? 1 : (r) + 2)
#define MCUD_SUMMED_ROWS(r) ((r) == 1 ? 3 : 1)
#define MCUD_SHIFT(r) ((r) == 4 ? 6 : (r) == 2 ? 4 : 3)
#define MCUD_INVERSE(r) ((r) == 4 ? 0x38E38E39u : 0xAAAAAAABu) /* of 9, of 3 */

/* The input under a tile; a row in the padding is one pixel. */
typedef struct {
    const int8_t *rows[6];
    int32_t pitches[6]; /* from a pixel to the next one, 0 in the padding */
    int32_t first;      /* column, which may be beside the input */
    int32_t cols;       /* of the input */
} mcud_tile_input;

typedef struct {
    int8_t *y;
    int32_t rows; /* 1..R */
    int32_t cols; /* 1..4 */
} mcud_tile_results;

/* A lane of 6 values along an axis. */
MCUD_INLINE void mcud_transform_6(const int32_t *d, int32_t *to, int32_t step)
{
    const int32_t v = mcud_lane_sub(d[4], d[2]);
    const int32_t u = mcud_lane_twice(mcud_lane_sub(d[0], d[2]));
    const int32_t g = mcud_lane_twice(mcud_lane_sub(d[3], d[1]));
    const int32_t p = mcud_lane_sub(d[4], mcud_lane_twice(mcud_lane_twice(d[2])));
    const int32_t q = mcud_lane_sub(d[3], mcud_lane_twice(mcud_lane_twice(d[1])));
    const int32_t last = mcud_lane_sub(mcud_lane_sub(d[5], d[3]), mcud_lane_twice(g));
    to[0] = mcud_lane_add(mcud_lane_twice(u), v);
    to[step] = mcud_lane_add(p, q);
    to[2 * step] = mcud_lane_sub(p, q);
    to[3 * step] = mcud_lane_add(v, g);
    to[4 * step] = mcud_lane_sub(v, g);
    to[5 * step] = last;
}

/* A lane of the column `col` of a tile's input, transformed along its rows -> to[positions], 6 apart. */
MCUD_INLINE void mcud_transform_column(int32_t r, const int32_t *d, int32_t *to)
{
    if (r == 4) {
        mcud_transform_6(d, to, 6);
    } else {
        to[0] = mcud_lane_sub(d[0], d[2]);
        to[6] = mcud_lane_add(d[1], d[2]);
        to[12] = mcud_lane_sub(d[2], d[1]);
        to[18] = mcud_lane_sub(d[1], d[3]);
    }
}

/* A tile's input -> `to`, where it is one of two tiles. `work` has room for 36 values. */
MCUD_INLINE void mcud_transform_input(int32_t r, const mcud_tile_input *tile, const int8_t *padding, int32_t depth,
                                      int32_t *to, int32_t *work)
{
    const int32_t pairs = depth / 2;
    const int32_t step = MCUD_TILES * pairs * MCUD_SUMMED_ROWS(r); /* from a position to the next one */
    const int32_t row_step = MCUD_TILES * pairs * (r == 1 ? 1 : 6);
    for (int32_t k = 0; k < depth; k += 4, to += 2 * MCUD_TILES) {
        for (int32_t lane = 0; lane < MCUD_LANES; lane++) {
            for (int32_t col = 0; col < 6; col++) {
                const int32_t at = tile->first + col;
                const int inside = at >= 0 && at < tile->cols;
                int32_t d[6];
                for (int32_t i = 0; i < MCUD_INPUT_ROWS(r); i++) {
                    d[i] = mcud_lane_load((inside ? tile->rows[i] + at * tile->pitches[i] : padding) + k, lane);
                }
                if (r == 1) {
                    work[col] = d[0];
                    work[col + 6] = d[1];
                    work[col + 12] = d[2];
                } else {
                    mcud_transform_column(r, d, work + col);
                }
            }
            for (int32_t i = 0; i < MCUD_INPUT_ROWS(r); i++) {
                int32_t t[6];
                mcud_transform_6(work + 6 * i, t, 1);
                for (int32_t j = 0; j < 6; j++) {
                    mcud_lane_store(to + i * row_step + j * step, lane, t[j]);
                }
            }
        }
    }
}

/* Sums of 6 positions along an axis to 4 results; `last` is the factor of the last one. */
MCUD_INLINE void mcud_results_6(const uint32_t *m, int32_t step, uint32_t last, uint32_t *y, int32_t y_step)
{
    const uint32_t s = m[step] + m[2 * step];
    const uint32_t d = m[step] - m[2 * step];
    const uint32_t s2 = m[3 * step] + m[4 * step];
    const uint32_t d2 = m[3 * step] - m[4 * step];
    const uint32_t m5 = last * m[5 * step];
    y[0] = m[0] + s + s2;
    y[y_step] = d + 2 * d2;
    y[2 * y_step] = s + 4 * s2;
    y[3 * y_step] = d + 8 * d2 + m5;
}

/* The sums of one channel of one tile to its results. */
MCUD_INLINE void mcud_finish_tile(int32_t r, uint32_t *sums, const int32_t *factors, int32_t zero, int32_t channels,
                                  int32_t pitch, const mcud_tile_results *to)
{
    enum { NEXT = MCUD_FOUR * MCUD_TILES }; /* from a position to the next one */
    int8_t *y = to->y;
    sums[(r == 1 ? 1 : 7) * NEXT] += (uint32_t)factors[0];
    for (int32_t j = 0; r > 1 && j < 6; j++) {
        uint32_t *const m = sums + j * NEXT;
        if (r == 4) {
            mcud_results_6(m, 6 * NEXT, 3, m, 6 * NEXT);
        } else {
            const uint32_t one = m[6 * NEXT];
            const uint32_t two = m[12 * NEXT];
            m[0] += one + two;
            m[6 * NEXT] = one - two - m[18 * NEXT];
        }
    }
    for (int32_t i = 0; i < to->rows; i++, sums += 6 * NEXT, y += pitch) {
        uint32_t t[4];
        mcud_results_6(sums, NEXT, r == 4 ? 3 : 1, t, 1);
        for (int32_t j = 0; j < to->cols; j++) {
            const int32_t sum = (int32_t)(t[j] * MCUD_INVERSE(r));
            y[j * channels] = mcud_requantize_shifted(sum, factors[1], zero, MCUD_SHIFT(r));
        }
    }
}

/* The input under tiles whose first row is `top`; results from row `rows` on are not needed. */
MCUD_INLINE void mcud_locate_rows(int32_t r, const mcud_op *op, int32_t top, int32_t rows, mcud_tile_input *tile)
{
    const mcud_winograd_s8_params *params = op->params;
    for (int32_t i = 0; i < MCUD_INPUT_ROWS(r); i++) {
        const int there = i < rows + 2 && top + i >= 0 && top + i < params->dims.input_rows;
        tile->rows[i] = there ? mcud_row(op->in[0], top + i) : params->padding;
        tile->pitches[i] = there ? params->dims.input_channels : 0;
    }
}

MCUD_INLINE int32_t mcud_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Rows [first_row, end_row) by tiles of r rows. */
MCUD_INLINE void mcud_winograd(int32_t r, const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_winograd_s8_params *params = op->params;
    const int32_t depth = params->dims.input_channels;
    const int32_t channels = params->dims.output_channels;
    const int32_t cols = params->dims.output_cols;
    const int32_t pitch = cols * channels;
    const int32_t positions = MCUD_POSITION_ROWS(r) * 6;
    const int32_t pairs = MCUD_SUMMED_ROWS(r) * depth / 2;
    const int32_t zero = (int32_t)(((uint32_t)params->quant.zero_point << MCUD_SHIFT(r)) + (1u << (MCUD_SHIFT(r) - 1)));
    int32_t *const tiles = mcud_row(op->scratch, first_row);
    int32_t *const sums = tiles + positions * pairs * MCUD_TILES;
    int8_t *const out = mcud_row(op->out, first_row);
    mcud_tile_results results[MCUD_TILES];
    mcud_tile_input input;
    int32_t count = 0;
    input.cols = params->dims.input_cols;
    for (int32_t row = first_row; row < end_row; row += r) {
        const int32_t rows_left = mcud_least(r, end_row - row);
        mcud_locate_rows(r, op, row - params->pad_top, rows_left, &input);
        for (int32_t col = 0; col < cols; col += MCUD_TILE_COLS) {
            input.first = col - params->pad_left;
            mcud_transform_input(r, &input, params->padding, depth, tiles + count, sums);
            results[count].y = out + (row - first_row) * pitch + col * channels;
            results[count].rows = rows_left;
            results[count].cols = mcud_least(MCUD_TILE_COLS, cols - col);
            count++;
            if (count < MCUD_TILES && (row + r < end_row || col + MCUD_TILE_COLS < cols)) {
                continue;
            }
            const int32_t *weights = params->packed_weights;
            const int32_t *factors = params->factors;
            for (int32_t channel = 0; channel < channels; channel += MCUD_FOUR, factors += 2 * MCUD_FOUR) {
                mcud_multiply_tiles(weights, tiles, sums, pairs, positions);
                weights += positions * pairs * MCUD_FOUR;
                for (int32_t i = 0; i < mcud_least(MCUD_FOUR, channels - channel) * MCUD_TILES; i++) {
                    const int32_t tile = i % MCUD_TILES;
                    if (tile < count) {
                        mcud_finish_tile(r, (uint32_t *)sums + i, factors + i / MCUD_TILES * 2, zero, channels, pitch,
                                         &results[tile]);
                        results[tile].y++;
                    }
                }
            }
            count = 0;
        }
    }
    mcud_clip_s8(out, (end_row - first_row) * pitch, params->act.min, params->act.max);
}

#endif
