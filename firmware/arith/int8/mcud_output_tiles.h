/* The loops of Winograd's filtering over output tiles of one height: see mcud_winograd_s8.h. */
#ifndef MCUD_OUTPUT_TILES_H
#define MCUD_OUTPUT_TILES_H

#include <stddef.h>
#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_simd.h"
#include "mcud_window.h"
#include "mcud_winograd_s8.h"

/* The input under a tile: the first pixels of its rows. */
typedef struct {
    const int8_t *rows[6];
    int32_t pixel; /* bytes from a pixel to the next one */
    int32_t row;   /* from a row to the next one */
} mcud_tile_input;

/* The target of a transform: channels of a tile's input, beside those of another tile. */
typedef struct {
    int32_t *to;
    int32_t step; /* bytes from a position to the next one */
    int32_t depth;
    int32_t *work; /* [72] */
} mcud_tile_transform;

/* A transform computes one lane at a time: two channels of a group of four, or one of them. */
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
#include "mcud_winograd_dsp.h"
#else
#include "mcud_winograd_c.h"
#endif
#if !defined(MCUD_TILES_DSP)
#include "mcud_winograd_results_c.h"
#endif

#if defined(__GNUC__)
#define MCUD_INLINE __attribute__((always_inline)) static inline
#else
#define MCUD_INLINE static inline
#endif

enum { MCUD_TILE_COLS = 4, MCUD_TILES = 2, MCUD_FOUR = 4, MCUD_TILE_FACTORS = 1 + MCUD_FACTORS };

/* Words for a lane along one axis; channels that are copied at a time for a tile that reaches outside the input. */
enum { MCUD_WORK_WORDS = 72, MCUD_COPIED = 16 };

/* Constants of a tile's height R. */
#define MCUD_INPUT_ROWS(r) ((r) + 2)
#if defined(MCUD_TILES_DSP)
#define MCUD_ADJACENT_ROWS(r) ((r) == 4 ? 2 : 1) /* that a transform needs; other rows may be at any address */
#else
#define MCUD_ADJACENT_ROWS(r) MCUD_INPUT_ROWS(r)
#endif
#define MCUD_POSITION_ROWS(r) ((r) == 1 ? 1 : (r) + 2)
#define MCUD_SUMMED_ROWS(r) ((r) == 1 ? 3 : 1)
#define MCUD_SHIFT(r) ((r) == 4 ? 6 : (r) == 2 ? 4 : 3)
#define MCUD_INVERSE(r) ((r) == 4 ? 0x38E38E39u : 0xAAAAAAABu) /* of 9, of 3 */

typedef struct {
    int8_t *y;
    int32_t row_step;
    int32_t rows; /* 1..R */
    int32_t cols; /* 1..4 */
} mcud_tile_results;

MCUD_INLINE int32_t mcud_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Transforms a lane of 6 values along an axis. */
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

MCUD_INLINE void mcud_transform_tile(int32_t r, const mcud_tile_input *in, const mcud_tile_transform *by)
{
#if defined(MCUD_TILES_DSP)
    if (r == 4) {
        mcud_transform_tile_4(in, by);
    } else if (r == 2) {
        mcud_transform_tile_2(in, by);
    } else {
        mcud_transform_tile_1(in, by);
    }
#else
    const int32_t step = by->step / 4;
    const int32_t row_step = r == 1 ? step / 3 : 6 * step;
    int32_t *const work = by->work;
    int32_t *to = by->to;
    for (int32_t k = 0; k < by->depth; k += 4, to += 2 * MCUD_TILES) {
        for (int32_t lane = 0; lane < MCUD_LANES; lane++) {
            const int8_t *column = in->rows[0] + k;
            for (int32_t col = 0; col < 6; col++, column += in->pixel) {
                const int8_t *const x = column;
                const int8_t *const z = x + 2 * in->row;
                const int32_t first = mcud_lane_load(x, lane);
                const int32_t second = mcud_lane_load(x + in->row, lane);
                const int32_t third = mcud_lane_load(z, lane);
                if (r == 1) {
                    work[col] = first;
                    work[col + 6] = second;
                    work[col + 12] = third;
                } else if (r == 2) {
                    work[col] = mcud_lane_sub(first, third);
                    work[col + 6] = mcud_lane_add(second, third);
                    work[col + 12] = mcud_lane_sub(third, second);
                    work[col + 18] = mcud_lane_sub(second, mcud_lane_load(z + in->row, lane));
                } else {
                    const int8_t *const last = z + 2 * in->row;
                    const int32_t d[6] = {first,
                                          second,
                                          third,
                                          mcud_lane_load(z + in->row, lane),
                                          mcud_lane_load(last, lane),
                                          mcud_lane_load(last + in->row, lane)};
                    mcud_transform_6(d, work + col, 6);
                }
            }
            int32_t *out = to;
            for (int32_t i = 0; i < MCUD_INPUT_ROWS(r); i++, out += row_step) {
                int32_t t[6];
                mcud_transform_6(work + 6 * i, t, 1);
                mcud_lane_store(out, lane, t[0]);
                mcud_lane_store(out + step, lane, t[1]);
                mcud_lane_store(out + 2 * step, lane, t[2]);
                mcud_lane_store(out + 3 * step, lane, t[3]);
                mcud_lane_store(out + 4 * step, lane, t[4]);
                mcud_lane_store(out + 5 * step, lane, t[5]);
            }
        }
    }
#endif
}

/* Channels of a pixel that are copied at a time. */
typedef struct {
    int32_t channel;
    int32_t bytes; /* a multiple of 4, MCUD_COPIED at most */
} mcud_part_of_pixel;

/* The rows of the input under tiles; those in the padding are NULL. */
typedef struct {
    const int8_t *rows[6];
    int32_t pitch;  /* from a row to the next one */
    int contiguous; /* whether a transform can read all rows in place */
} mcud_tile_rows;

/* Copies a part of the pixels of a row under a tile to copy[6][bytes]. Pixels `inside` begin at `row`; the others, and
 * all pixels of padding rows, become zero points. */
MCUD_INLINE void mcud_copy_row(const mcud_winograd_s8_params *params, const int8_t *row, mcud_taps inside,
                               mcud_part_of_pixel part, int8_t *copy)
{
    const int8_t *const padding = params->padding + part.channel;
    copy = mcud_copy_pixels(copy, padding, 0, inside.first, part.bytes);
    if (inside.first < inside.end) {
        copy = mcud_copy_pixels(copy, row + part.channel, params->dims.input_channels, inside.end - inside.first,
                                part.bytes);
    }
    mcud_copy_pixels(copy, padding, 0, 6 - inside.end, part.bytes);
}

/* Transforms a tile's input to `to`. If its first column is outside the input, it copies pixels, some channels at a
 * time. */
MCUD_INLINE void mcud_transform_input(int32_t r, const mcud_winograd_s8_params *params, const mcud_tile_rows *under,
                                      int32_t first, int32_t *to, int32_t *work)
{
    const int32_t depth = params->dims.input_channels;
    const mcud_taps none = {6, 6};
    const mcud_taps inside = mcud_taps_inside(first, 1, 6, 0, params->dims.input_cols);
    mcud_tile_input in = {{NULL}, depth, under->pitch};
    mcud_tile_transform by = {to, MCUD_TILES * 2 * depth * MCUD_SUMMED_ROWS(r), depth, work};
    if (under->contiguous && inside.end - inside.first == 6) {
        for (int32_t i = 0; i < MCUD_INPUT_ROWS(r); i += MCUD_ADJACENT_ROWS(r)) {
            in.rows[i] = under->rows[i] + first * depth;
        }
        mcud_transform_tile(r, &in, &by);
        return;
    }
    mcud_part_of_pixel part = {0, MCUD_COPIED};
    for (; part.channel < depth; part.channel += MCUD_COPIED, by.to += MCUD_COPIED * MCUD_TILES / 2) {
        int8_t *const copy = (int8_t *)(work + MCUD_WORK_WORDS);
        part.bytes = mcud_least(depth - part.channel, MCUD_COPIED);
        by.depth = part.bytes;
        in.pixel = part.bytes;
        in.row = 6 * part.bytes;
        for (int32_t i = 0; i < MCUD_INPUT_ROWS(r); i++) {
            const int8_t *const row = under->rows[i];
            in.rows[i] = copy + i * in.row;
            if (row == NULL) {
                mcud_copy_row(params, NULL, none, part, copy + i * in.row);
            } else {
                mcud_copy_row(params, row + (first + inside.first) * depth, inside, part, copy + i * in.row);
            }
        }
        mcud_transform_tile(r, &in, &by);
    }
}

#if !defined(MCUD_TILES_DSP)

/* Computes a tile's results of one channel from their sums. */
MCUD_INLINE void mcud_finish_tile(int32_t r, uint32_t *sums, const int32_t *factors, int32_t zero, int32_t pixel,
                                  const mcud_tile_results *to)
{
    enum { NEXT = MCUD_FOUR * MCUD_TILES }; /* from a position to the next one */
    const int32_t factor[2] = {factors[1], factors[MCUD_FACTORS]};
    const int32_t rows = to->rows;
    const int32_t cols = to->cols;
    const int32_t row_step = to->row_step;
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
    for (int32_t i = 0; i < rows; i++, sums += 6 * NEXT, y += row_step) {
        uint32_t t[4];
        mcud_results_6(sums, NEXT, r == 4 ? 3 : 1, t, 1);
        const int8_t q[4] = {
            mcud_requantize_shifted((int32_t)(t[0] * MCUD_INVERSE(r)), factor, zero, MCUD_SHIFT(r)),
            mcud_requantize_shifted((int32_t)(t[1] * MCUD_INVERSE(r)), factor, zero, MCUD_SHIFT(r)),
            mcud_requantize_shifted((int32_t)(t[2] * MCUD_INVERSE(r)), factor, zero, MCUD_SHIFT(r)),
            mcud_requantize_shifted((int32_t)(t[3] * MCUD_INVERSE(r)), factor, zero, MCUD_SHIFT(r)),
        };
        if (cols == 4) {
            y[0] = q[0];
            y[pixel] = q[1];
            y[2 * pixel] = q[2];
            y[3 * pixel] = q[3];
        } else {
            for (int32_t j = 0; j < cols; j++) {
                y[j * pixel] = q[j];
            }
        }
    }
}

#endif

/* Computes a tile's results of up to four channels from their sums. */
MCUD_INLINE void mcud_finish_channels(int32_t r, int32_t *sums, const int32_t *factors, mcud_finish_s8 finish,
                                      int32_t channels, const mcud_tile_results *to)
{
#if defined(MCUD_TILES_DSP)
    int8_t copy[16 * MCUD_FOUR]; /* if some results are outside the output */
    const int partial = to->rows < r || to->cols < MCUD_TILE_COLS;
    mcud_whole_tile whole = {to->y, finish.pitch, to->row_step, finish.zero_point, channels};
    if (partial) {
        whole.y = copy;
        whole.pixel = MCUD_FOUR;
        whole.row = MCUD_FOUR * MCUD_TILE_COLS;
    }
    if (r == 4) {
        mcud_result_tile_4(sums, factors, &whole);
    } else if (r == 2) {
        mcud_result_tile_2(sums, factors, &whole);
    } else {
        mcud_result_tile_1(sums, factors, &whole);
    }
    for (int32_t i = 0; partial && i < to->rows; i++) {
        int8_t *y = to->y + i * to->row_step;
        for (int32_t j = 0; j < to->cols; j++, y += finish.pitch) {
            memcpy(y, copy + (i * MCUD_TILE_COLS + j) * MCUD_FOUR, (size_t)channels);
        }
    }
#else
    for (int32_t i = 0; i < channels; i++) {
        const mcud_tile_results one = {to->y + i, to->row_step, to->rows, to->cols};
        mcud_finish_tile(r, (uint32_t *)sums + i * MCUD_TILES, factors + MCUD_TILE_FACTORS * i, finish.zero_point, finish.pitch, &one);
    }
#endif
}

/* Finds the input rows under tiles whose first row is `top`; results from row `needed` on are not needed. */
MCUD_INLINE void mcud_locate_rows(int32_t r, const mcud_op *op, int32_t top, int32_t needed, mcud_tile_rows *under)
{
    const mcud_winograd_s8_params *params = op->params;
    under->pitch = params->dims.input_cols * params->dims.input_channels;
    under->contiguous = 1;
    for (int32_t i = 0; i < MCUD_INPUT_ROWS(r); i++) {
        const int read = i < needed + 2 && top + i >= 0 && top + i < params->dims.input_rows;
        const int8_t *const before = i % MCUD_ADJACENT_ROWS(r) != 0 ? under->rows[i - 1] : NULL;
        under->rows[i] = read ? mcud_row(op->in[0], top + i) : NULL;
        if (!read || (before != NULL && under->rows[i] != before + under->pitch)) {
            under->contiguous = 0;
        }
    }
}

/* Computes rows [first_row, end_row) by tiles of r rows. */
MCUD_INLINE void mcud_winograd(int32_t r, const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_winograd_s8_params *params = op->params;
    const int32_t depth = params->dims.input_channels;
    const int32_t channels = params->dims.output_channels;
    const int32_t cols = params->dims.output_cols;
    const int32_t pitch = cols * channels;
    const int32_t positions = MCUD_POSITION_ROWS(r) * 6;
    const int32_t pairs = MCUD_SUMMED_ROWS(r) * depth / 2;
#if MCUD_FACTORS == 2
    const int32_t zero = params->quant.zero_point;
#else /* 2^s times it, and half of 2^s */
    const int32_t zero = (int32_t)(((uint32_t)params->quant.zero_point << MCUD_SHIFT(r)) + (1u << (MCUD_SHIFT(r) - 1)));
#endif
    const mcud_finish_s8 finish = {zero, 0, channels};
    int32_t *const tiles = mcud_row(op->scratch, first_row);
    int32_t *const sums = tiles + positions * pairs * MCUD_TILES;
    int8_t *const out = mcud_row(op->out, first_row);
    mcud_tile_results results[MCUD_TILES];
    mcud_tile_rows under;
    int32_t count = 0;
    for (int32_t row = first_row; row < end_row; row += r) {
        const int32_t rows_left = mcud_least(r, end_row - row);
        mcud_locate_rows(r, op, row - params->pad_top, rows_left, &under);
        for (int32_t col = 0; col < cols; col += MCUD_TILE_COLS) {
            mcud_transform_input(r, params, &under, col - params->pad_left, tiles + count, sums);
            results[count].y = out + (row - first_row) * pitch + col * channels;
            results[count].row_step = pitch;
            results[count].rows = rows_left;
            results[count].cols = mcud_least(MCUD_TILE_COLS, cols - col);
            count++;
            if (count < MCUD_TILES && (row + r < end_row || col + MCUD_TILE_COLS < cols)) {
                continue;
            }
            const int32_t *weights = params->packed_weights;
            const int32_t *factors = params->factors;
            for (int32_t channel = 0; channel < channels; channel += MCUD_FOUR, factors += MCUD_TILE_FACTORS * MCUD_FOUR) {
                mcud_multiply_tiles(weights, tiles, sums, pairs, positions);
                weights += positions * pairs * MCUD_FOUR;
                for (int32_t tile = 0; tile < count; tile++) {
                    mcud_finish_channels(r, sums + tile, factors, finish, mcud_least(MCUD_FOUR, channels - channel),
                                         &results[tile]);
                    results[tile].y += MCUD_FOUR;
                }
            }
            count = 0;
        }
    }
    mcud_clip_s8(out, (end_row - first_row) * pitch, params->act.min, params->act.max);
}

#endif
