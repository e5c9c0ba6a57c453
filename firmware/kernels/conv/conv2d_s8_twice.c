#include "conv2d_s8_twice.h"

#include <stdbool.h>

#include "mcud_dot_row_s8.h"
#include "mcud_finish_twice.h"
#include "mcud_window.h"

typedef struct {
    const mcud_conv2d_s8_twice_params *params;
    mcud_window_place place; /* of the window, without the channels of groups before */
    int32_t values;          /* of a run, or of a window in one piece */
    int32_t step;            /* in bytes, from a run to the next one */
} windows;

/* Adds the products of a window and four channels, or one; returns what follows the weights. */
static inline const int32_t *sum_window(const windows *from, const int32_t *w, int32_t channels, int32_t *sums)
{
    const mcud_conv2d_s8_twice_params *params = from->params;
    const mcud_window_place *place = &from->place;
    const bool by_tap = params->row_runs > 1 || params->window.kernel_cols == 1;
    for (int32_t r = 0; r < params->window.kernel_rows; r++) {
        const bool inside = r >= place->rows.first && r < place->rows.end;
        for (int32_t s = 0; s < params->row_runs; s++) {
            const int8_t *x = params->padding;
            if (inside && (!by_tap || (s >= place->cols.first && s < place->cols.end))) {
                x = (const int8_t *)place->memory + place->offsets[r] + (place->first_byte + s * from->step);
            }
            w = channels == 4 ? mcud_dot_row_s8(x, params->run_values, w, sums)
                              : mcud_dot_one_s8(x, params->run_values, w, sums);
        }
    }
    return w;
}

/* The channels of one group of one pixel. Returns the record after those used. */
static const int32_t *convolve(const windows *from, const int32_t *record, const int8_t *exponents,
                               const mcud_twice_s8 *finish, int8_t *y)
{
    int32_t left = from->params->group_outputs;
    for (; left >= 4; left -= 4, y += 4, exponents += 4) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        record = sum_window(from, record + 4, 4, sums);
        mcud_finish_twice(sums, record, exponents, 4, finish, y);
        record += 4;
    }
    for (; left > 0; left--, y++, exponents++) {
        int32_t sum = *record;
        record = sum_window(from, record + 1, 1, &sum);
        mcud_finish_twice(&sum, record, exponents, 1, finish, y);
        record++;
    }
    return record;
}

/* The same of a window that is one piece of memory, whole groups of four values. */
static void convolve_piece(const windows *from, const int8_t *x, const mcud_twice_s8 *finish, int8_t *y)
{
    const int8_t *const ends[2] = {x + (from->values & 28), x + from->values};
    const int32_t *record = from->params->packed_weights;
    const int8_t *exponents = from->params->exponents;
    int32_t left = from->params->group_outputs;
    for (; left >= 4; left -= 4, y += 4, exponents += 4) {
        int32_t sums[4] = {record[0], record[1], record[2], record[3]};
        mcud_sum_1x4(x, ends, record + 4, sums);
        record += 4 + from->values;
        mcud_finish_twice(sums, record, exponents, 4, finish, y);
        record += 4;
    }
    for (; left > 0; left--, y++, exponents++) {
        int32_t sum = *record;
        record = mcud_dot_one_s8(x, from->values, record + 1, &sum);
        mcud_finish_twice(&sum, record, exponents, 1, finish, y);
        record++;
    }
}

/* All channels of one pixel. */
static void convolve_groups(windows *from, const mcud_twice_s8 *finish, int8_t *y)
{
    const mcud_conv2d_s8_twice_params *params = from->params;
    const int32_t *record = params->packed_weights;
    for (int32_t at = 0; at < params->dims.output_channels; at += params->group_outputs) {
        record = convolve(from, record, params->exponents + at, finish, y + at);
        from->place.first_byte += params->group_inputs;
    }
}

void mcud_conv2d_s8_twice(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_s8_twice_params *params = op->params;
    const mcud_window *window = &params->window;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *y = mcud_row(op->out, first_row);
    windows from = {.params = params, .step = window->dilation_cols * params->dims.input_channels};
    from.place.memory = op->in[0]->memory;
    from.place.offsets = offsets;
    const mcud_twice_s8 finish = {params->quant.zero_point, params->act.min, params->act.max};
    const bool in_groups = params->groups == 1 && params->row_runs == 1 && params->run_values % 4 == 0;
    const bool adjacent = window->kernel_rows == 1 ||
                          (window->dilation_rows == 1 && window->kernel_cols == params->dims.input_cols);
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * window->stride_rows - window->pad_top;
        const int32_t bottom = top + window->kernel_rows;
        from.place.rows = mcud_row_taps(window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, window->dilation_rows, from.place.rows, offsets);
        const bool whole = in_groups && adjacent && top >= 0 && bottom <= params->dims.input_rows &&
                           mcud_run_end(op->in[0], top, bottom) == bottom;
        from.values = whole ? window->kernel_rows * params->run_values : params->run_values;
        int32_t left = -window->pad_left;
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += window->stride_cols) {
            from.place.cols = mcud_col_taps(window, left, params->dims.input_cols);
            from.place.first_byte = left * params->dims.input_channels;
            if (whole && from.place.cols.first == 0 && from.place.cols.end == window->kernel_cols) {
                const uint8_t *x = from.place.memory + offsets[0] + from.place.first_byte;
                convolve_piece(&from, (const int8_t *)x, &finish, y);
            } else {
                convolve_groups(&from, &finish, y);
            }
            y += params->dims.output_channels;
        }
    }
}
