#include "conv2d_s8_first_wide.h"

#include "mcud_clip_s8.h"
#include "mcud_wide_s8.h"
#include "mcud_window.h"

/* A row of the input from some column on; a row of padding has a `step` of 0. */
typedef struct {
    const int8_t *column;
    int32_t step; /* to the next column */
} columns_of_row;

/* Columns of the scratch. */
typedef struct {
    int16_t *x;     /* the first value of a row in the first column */
    int32_t values; /* from one column to the next */
    int32_t count;
} expanded_columns;

/* Inlined: each caller has a constant number of channels. */
#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

/* Writes a pair of values of a column. */
INLINED void write_pair(int16_t *x, int32_t lower, int32_t upper)
{
#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__)
    *(int32_t *)(void *)x = mcud_lower_halves(lower, upper);
#else
    x[0] = (int16_t)lower;
    x[1] = (int16_t)upper;
#endif
}

/* Writes the values of two rows of a column. */
INLINED void write_two(int16_t *x, const int8_t *a, const int8_t *b, int32_t channels)
{
    if (channels == 3) { /* all loads in a row */
        const int8_t a0 = a[0], a1 = a[1], a2 = a[2], b0 = b[0], b1 = b[1], b2 = b[2];
        write_pair(x, a0, b0);
        write_pair(x + 2, a1, b1);
        write_pair(x + 4, a2, b2);
        return;
    }
    for (int32_t c = 0; c < channels; c++) {
        write_pair(x + 2 * c, a[c], b[c]);
    }
}

/* Writes the values of one row of a column; the weight beside an odd last value is 0. */
INLINED void write_one(int16_t *x, const int8_t *a, int32_t channels)
{
    if (channels == 1) {
        write_pair(x, a[0], 0);
    } else if (channels == 2) {
        write_pair(x, a[0], a[1]);
    } else {
        const int8_t a0 = a[0], a1 = a[1], a2 = a[2];
        write_pair(x, a0, a1);
        write_pair(x + 2, a2, channels == 4 ? a[3] : 0);
    }
}

INLINED void expand_two(columns_of_row a, columns_of_row b, int32_t channels, expanded_columns to)
{
    for (; to.count > 0; to.count--) {
        write_two(to.x, a.column, b.column, channels);
        to.x += to.values;
        a.column += a.step;
        b.column += b.step;
    }
}

INLINED void expand_three(columns_of_row a, columns_of_row b, columns_of_row c, int32_t channels,
                                expanded_columns to)
{
    for (; to.count > 0; to.count--) {
        write_two(to.x, a.column, b.column, channels);
        write_one(to.x + 2 * channels, c.column, channels);
        to.x += to.values;
        a.column += a.step;
        b.column += b.step;
        c.column += c.step;
    }
}

INLINED void expand_one(columns_of_row a, int32_t channels, expanded_columns to)
{
    for (; to.count > 0; to.count--) {
        write_one(to.x, a.column, channels);
        to.x += to.values;
        a.column += a.step;
    }
}

/* Row `row` of the input from column `col` on, or a row of `padding`. */
static columns_of_row row_of(const mcud_op *op, int32_t row, int32_t col, const int8_t *padding)
{
    const mcud_conv2d_s8_first_wide_params *params = op->params;
    columns_of_row columns = {padding, 0};
    if (row >= 0 && row < params->dims.input_rows) {
        const int8_t *const first = mcud_row(op->in[0], row);
        columns.column = first + col * params->dims.input_channels;
        columns.step = params->dims.input_channels;
    }
    return columns;
}

static int16_t *fill(int16_t *x, int32_t values, int32_t value)
{
    for (int16_t *const end = x + values; x < end; x++) {
        *x = (int16_t)value;
    }
    return x;
}

/* Expands all rows of windows that begin in row `top` of the input, two or three at a time. */
INLINED void expand_rows(const mcud_op *op, int32_t top, int32_t col, int32_t channels, expanded_columns to)
{
    const mcud_conv2d_s8_first_wide_params *params = op->params;
    const int32_t step = params->window.dilation_rows;
    int8_t padding[4];
    memset(padding, params->input_zero_point, sizeof padding);
    for (int32_t rows = params->window.kernel_rows; rows > 0; rows -= 2, top += 2 * step) {
        const columns_of_row a = row_of(op, top, col, padding);
        if (rows == 1) {
            expand_one(a, channels, to);
            return;
        }
        const columns_of_row b = row_of(op, top + step, col, padding);
        if (rows == 3) {
            expand_three(a, b, row_of(op, top + 2 * step, col, padding), channels, to);
            return;
        }
        expand_two(a, b, channels, to);
        to.x += 2 * channels;
    }
}

/* Expands the columns under `outputs` windows of one row that begin in row `top` and column `left` of the input. */
static void expand_columns(const mcud_op *op, int32_t top, int32_t left, int32_t outputs, int16_t *x)
{
    const mcud_conv2d_s8_first_wide_params *params = op->params;
    const int32_t channels = params->dims.input_channels;
    const int32_t values = 2 * params->column_pairs;
    const int32_t columns = (outputs - 1) * params->window.stride_cols + params->window.kernel_cols;
    const mcud_taps inside = mcud_taps_inside(left, 1, columns, 0, params->dims.input_cols);
    const int32_t col = left + inside.first;
    fill(x + inside.end * values, (columns - inside.end) * values, params->input_zero_point);
    x = fill(x, inside.first * values, params->input_zero_point);
    const expanded_columns to = {x, values, inside.end - inside.first};
    if (channels == 3) {
        expand_rows(op, top, col, 3, to);
    } else if (channels == 1) {
        expand_rows(op, top, col, 1, to);
    } else {
        expand_rows(op, top, col, channels, to);
    }
}

void mcud_conv2d_s8_first_wide(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_first_wide_params *params = op->params;
    const int32_t channels = params->dims.output_channels;
    const int32_t pixel_values = 2 * params->window.stride_cols * params->column_pairs;
    const mcud_wide_s8 by = {
        .zero_point = params->quant.zero_point,
        .pitch = channels,
        .channels = channels,
        .pairs = params->window.kernel_cols * params->column_pairs,
        .step = 2 * pixel_values,
        .records = params->packed_weights,
    };
    int16_t *const columns = mcud_row(op->scratch, first_row);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        for (int32_t col = 0; col < params->dims.output_cols;) {
            const int32_t more = params->dims.output_cols - col;
            const int32_t part = more < params->part_cols ? more : params->part_cols;
            expand_columns(op, top, col * params->window.stride_cols - params->window.pad_left, part, columns);
            const int16_t *x = columns;
            for (int32_t left = part; left > 0;) {
                const int32_t block = left < 3 ? 1 : left - left % 3;
                mcud_wide_multiply(&by, x, block, y);
                x += block * pixel_values;
                y += block * channels;
                left -= block;
            }
            col += part;
        }
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
