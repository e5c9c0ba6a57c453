#include "dwconv2d_s8_multiplied.h"

#include "mcud_dot_s8.h"
#include "mcud_window.h"

/* A tap of the window: offsets of its values from the first tap inside the input, and of its weights. */
typedef struct {
    uint32_t x;
    uint32_t w;
} tap;

/* The taps of the next pixels: those inside the input, then those in the padding. */
typedef struct {
    tap *taps;
    tap *inside_end;
    tap *end;
} tap_list;

static void list_taps(const mcud_dwconv2d_s8_multiplied_params *params, const uint32_t *offsets,
                      mcud_taps rows, mcud_taps cols, tap_list *list)
{
    const uint32_t pitch = (uint32_t)(params->window.dilation_cols * params->dims.input_channels);
    tap *inside = list->taps;
    tap *padded = list->end;
    uint32_t w = 0;
    for (int32_t r = 0; r < params->window.kernel_rows; r++) {
        uint32_t x = r >= rows.first && r < rows.end ? offsets[r] : 0;
        for (int32_t s = 0; s < params->window.kernel_cols; s++, w += (uint32_t)params->dims.output_channels) {
            if (r < rows.first || r >= rows.end || s < cols.first || s >= cols.end) {
                padded--;
                padded->w = w;
                continue;
            }
            inside->x = x;
            inside->w = w;
            inside++;
            x += pitch;
        }
    }
    list->inside_end = inside;
}

/* Computes one channel of a pixel. */
static inline void one_channel(const mcud_dwconv2d_s8_multiplied_params *params, const tap_list *list,
                               const uint8_t *x, int32_t channel, int8_t *out)
{
    const int8_t *weights = params->weights + channel;
    int32_t sum = params->bias[channel];
    const tap *at = list->taps;
    for (; at < list->inside_end; at++) {
        sum += *((const int8_t *)x + at->x) * weights[at->w];
    }
    for (; at < list->end; at++) {
        sum += params->input_zero_point * weights[at->w];
    }
    const mcud_finish_s8 finish = {params->quant.zero_point, params->quant.left_shift, 0};
    out[channel] = MCUD_RESULT_S8(sum, params->multipliers + channel, params->dims.output_channels, &finish);
}

static void one_pixel(const mcud_dwconv2d_s8_multiplied_params *params, const tap_list *list,
                      const uint8_t *x, int8_t *out)
{
    int32_t k = 0;
    for (int32_t c = 0; c < params->dims.input_channels; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            one_channel(params, list, x + c, k, out);
        }
    }
}

void mcud_dwconv2d_s8_multiplied(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_s8_multiplied_params *params = op->params;
    uint32_t *offsets = mcud_row(op->scratch, first_row);
    int8_t *const first = mcud_row(op->out, first_row);
    int8_t *out = first;
    tap *const taps = (tap *)(void *)(offsets + params->window.kernel_rows);
    tap_list list = {taps, taps, taps + params->window.kernel_rows * params->window.kernel_cols};
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t top = row * params->window.stride_rows - params->window.pad_top;
        const mcud_taps rows = mcud_row_taps(&params->window, top, params->dims.input_rows);
        mcud_window_rows(op->in[0], top, params->window.dilation_rows, rows, offsets);
        int32_t left = -params->window.pad_left;
        mcud_taps listed = {-1, -1};
        for (int32_t col = 0; col < params->dims.output_cols; col++, left += params->window.stride_cols) {
            const mcud_taps cols = mcud_col_taps(&params->window, left, params->dims.input_cols);
            if (cols.first != listed.first || cols.end != listed.end) {
                list_taps(params, offsets, rows, cols, &list);
                listed = cols;
            }
            const int32_t first_byte =
                (left + cols.first * params->window.dilation_cols) * params->dims.input_channels;
            one_pixel(params, &list, op->in[0]->memory + first_byte, out);
            out += params->dims.output_channels;
        }
    }
    mcud_clip_s8(first, (int32_t)(out - first), params->act.min, params->act.max);
}
