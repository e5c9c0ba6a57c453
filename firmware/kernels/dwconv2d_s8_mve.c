#include "dwconv2d_s8_mve.h"

#include "mcud_dot_vector_s8.h"
#include "mcud_window.h"

/* Where the taps of a window are: in the input, or in the padding, whose values stand in flash. */
static void find_taps(const mcud_dwconv2d_s8_mve_params *params, const mcud_window_place *place,
                      const int8_t **taps)
{
    const int32_t pitch = params->dilation_cols * params->channels;
    for (int32_t r = 0; r < params->kernel_rows; r++) {
        const int inside = r >= place->rows.first && r < place->rows.end;
        const void *row = inside ? place->memory + place->offsets[r] + place->first_byte : NULL;
        const int8_t *x = row;
        for (int32_t s = 0; s < params->kernel_cols; s++) {
            if (!inside || s < place->cols.first || s >= place->cols.end) {
                *taps++ = params->padding;
                continue;
            }
            *taps++ = x;
            x += pitch;
        }
    }
}

/* All channels of a pixel whose taps lie `at` bytes behind `taps`. */
static void one_pixel(const mcud_dwconv2d_s8_mve_params *params, const int8_t *const *taps, int32_t at, int8_t *y)
{
    const mcud_vector_finish finish = {params->left, params->output_zero_point};
    const int32_t tap_count = params->kernel_rows * params->kernel_cols;
    const int32_t *record = params->records;
    for (int32_t left = params->channels; left > 0; left -= 16, at += 16, y += 16) {
        record = mcud_vector_taps(taps, tap_count, at, record, &finish, y, left < 16 ? left : 16);
    }
}

void mcud_dwconv2d_s8_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_mve_params *params = op->params;
    const int32_t tap_count = params->kernel_rows * params->kernel_cols;
    const int32_t step = params->stride_cols * params->channels;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    const int8_t **taps = mcud_pointers(offsets + params->kernel_rows);
    int8_t *const out = mcud_row(op->out, first_row);
    int8_t *y = out;
    mcud_window_place place = {.memory = op->in[0]->memory, .offsets = offsets};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->stride_rows - params->pad_top;
        place.rows = mcud_taps_inside(top, params->dilation_rows, params->kernel_rows, 0, params->input_rows);
        mcud_window_rows(op->in[0], top, params->dilation_rows, place.rows, offsets);
        int32_t left = -params->pad_left;
        int32_t moved = -1; /* how far the taps found last have moved since, or -1 where they cannot */
        for (int32_t col = 0; col < params->output_cols; col++, left += params->stride_cols) {
            place.cols =
                mcud_taps_inside(left, params->dilation_cols, params->kernel_cols, 0, params->input_cols);
            const int32_t inside = (place.rows.end - place.rows.first) * (place.cols.end - place.cols.first);
            if (moved < 0 || inside < tap_count) {
                place.first_byte = (left + place.cols.first * params->dilation_cols) * params->channels;
                find_taps(params, &place, taps);
                moved = 0;
            }
            one_pixel(params, taps, moved, y);
            y += params->channels;
            moved = inside < tap_count ? -1 : moved + step;
        }
    }
    mcud_vector_clip(out, (int32_t)(y - out), params->low, params->high);
}
