#include "dwconv2d_s8_3x3.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "mcud_clip_s8.h"
#include "mcud_columns_s8.h"

/* Three rows of four channels of the input, from its first column on; `steps` to the next column are 0 for a row in
 * the padding, whose values are always the same. */
typedef struct {
    const int8_t *rows[3];
    int32_t steps[3];
    bool inside; /* no row is in the padding */
    int32_t padding; /* four times the zero point */
} window_rows;

static int32_t load(const int8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return four;
}

/* The same of fewer channels: bytes after them must not be read. */
static int32_t load_some(const int8_t *from, int32_t channels)
{
    uint32_t four = 0;
    for (int32_t i = 0; i < channels; i++) {
        four |= (uint32_t)(uint8_t)from[i] << (8 * i);
    }
    return (int32_t)four;
}

/* Columns [first, end) of four channels, if no row is in the padding. */
static int32_t *expand_inside(const window_rows *window, int32_t first, int32_t end, int32_t *to)
{
    const int32_t step = window->steps[0];
    int32_t at = first * step;
    for (; first < end; first++, at += step) {
        to = mcud_expand_column(to, load(window->rows[0] + at), load(window->rows[1] + at),
                                load(window->rows[2] + at));
    }
    return to;
}

/* Columns [first, end) of the input, of `channels` channels, 4 or fewer. */
static int32_t *expand(const window_rows *window, int32_t first, int32_t end, int32_t channels, int32_t *to)
{
    const int8_t *upper = window->rows[0] + first * window->steps[0];
    const int8_t *middle = window->rows[1] + first * window->steps[1];
    const int8_t *lower = window->rows[2] + first * window->steps[2];
    for (; first < end; first++) {
        to = channels == 4 ? mcud_expand_column(to, load(upper), load(middle), load(lower))
                           : mcud_expand_column(to, load_some(upper, channels), load_some(middle, channels),
                                                load_some(lower, channels));
        upper += window->steps[0];
        middle += window->steps[1];
        lower += window->steps[2];
    }
    return to;
}

static int32_t *expand_padding(const window_rows *window, int32_t count, int32_t *to)
{
    for (; count > 0; count--) {
        to = mcud_expand_column(to, window->padding, window->padding, window->padding);
    }
    return to;
}

static int32_t between(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* Columns [first, first + count), of which some may be beside the input. */
static void expand_columns(const mcud_dwconv2d_s8_3x3_params *params, const window_rows *window, int32_t first,
                           int32_t count, int32_t channels, int32_t *to)
{
    const int32_t inside = between(first, 0, params->dims.input_cols);
    const int32_t end = between(first + count, 0, params->dims.input_cols);
    to = expand_padding(window, inside - first, to);
    to = window->inside && channels == 4 ? expand_inside(window, inside, end, to)
                                         : expand(window, inside, end, channels, to);
    (void)expand_padding(window, first + count - end, to);
}

enum { STORED_WORDS = 4 + 9 + 4 };

static void expand_record(const int32_t *record, int32_t *to)
{
    memcpy(to, record, 4 * sizeof *to);
    to += 4;
    record += 4;
    for (int32_t column = 0; column < 3; column++, record += 3) {
        to = mcud_expand_column(to, record[0], record[1], record[2]);
    }
    memcpy(to, record, 4 * sizeof *to);
}

/* A row of four channels, or fewer. */
static void four_channels(const mcud_dwconv2d_s8_3x3_params *params, const window_rows *window,
                          const int32_t *record, int32_t channels, int32_t *columns, int8_t *y)
{
    const int32_t stride = params->window.stride_cols;
    const int32_t most = (MCUD_COLUMNS - 3) / stride + 1;
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, params->dims.channels};
    for (int32_t col = 0; col < params->dims.output_cols;) {
        const int32_t count = params->dims.output_cols - col < most ? params->dims.output_cols - col : most;
        expand_columns(params, window, col * stride - params->window.pad_left, (count - 1) * stride + 3, channels,
                       columns);
        if (channels == 4) {
            mcud_columns_s8(columns, stride, record, count, &finish, y);
        } else {
            for (int32_t i = 0; i < count; i++) {
                int8_t four[4];
                mcud_columns_s8(columns + i * stride * MCUD_COLUMN_WORDS, stride, record, 1, &finish, four);
                memcpy(y + i * params->dims.channels, four, (uint32_t)channels);
            }
        }
        y += count * params->dims.channels;
        col += count;
    }
}

void mcud_dwconv2d_s8_3x3(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_3x3_params *params = op->params;
    int32_t *const record = mcud_row(op->scratch, first_row);
    int32_t *const columns = record + MCUD_COLUMN_RECORD;
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    window_rows window;
    memset(&window.padding, params->input_zero_point, sizeof window.padding);
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        const int8_t *bases[3];
        for (int32_t r = 0; r < 3; r++) {
            const bool inside = top + r >= 0 && top + r < params->dims.input_rows;
            bases[r] = inside ? mcud_row(op->in[0], top + r) : NULL;
            window.steps[r] = inside ? params->dims.channels : 0;
        }
        window.inside = bases[0] != NULL && bases[1] != NULL && bases[2] != NULL;
        const int32_t *stored = params->packed_weights;
        for (int32_t at = 0; at < params->dims.channels; at += 4, stored += STORED_WORDS) {
            expand_record(stored, record);
            for (int32_t r = 0; r < 3; r++) {
                window.rows[r] = bases[r] != NULL ? bases[r] + at : (const int8_t *)&window.padding;
            }
            const int32_t left = params->dims.channels - at;
            four_channels(params, &window, record, left < 4 ? left : 4, columns, y + at);
        }
        y += params->dims.output_cols * params->dims.channels;
    }
    mcud_clip_s8(out, (int32_t)(y - out), params->act.min, params->act.max);
}
