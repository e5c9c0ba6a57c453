#include "dwconv2d_f32_update.h"

#include "mcud_outer_f32.h"
#include "mcud_tap_pixels_f32.h"

/* Adds the products of eight channels at all pixels of a tap, if each input channel has one output channel. */
static void add_8(const mcud_tap_pixels_f32 *from, int32_t c, float sums[8])
{
    for (int32_t run = from->runs.first; run < from->runs.end; run++) {
        const float *x = mcud_tap_input_f32(from, run) + c;
        mcud_add_inner_8_f32(mcud_tap_gradient_f32(from, run) + c, x, &from->cols, sums);
    }
}

/* Adds the products of output channel k, which reads input channel c. */
static float add_1(const mcud_tap_pixels_f32 *from, int32_t k, int32_t c, float sum)
{
    for (int32_t run = from->runs.first; run < from->runs.end; run++) {
        const float *gradient = mcud_tap_gradient_f32(from, run) + k;
        sum = mcud_add_terms_f32(gradient, mcud_tap_input_f32(from, run) + c, &from->cols, sum);
    }
    return sum;
}

/* Updates the weights of all channels at a tap, from index `line` on. */
static void update_tap(const mcud_tap_pixels_f32 *from, const mcud_update_f32 *to, int32_t line)
{
    const mcud_dwconv2d_f32_update_params *params = from->op->params;
    const int32_t outputs = params->dims.output_channels;
    const int32_t inside = from->rows.first < from->rows.end && from->cols.count > 0;
    if (!inside && to->sums != NULL) {
        return;
    }
    int32_t k = 0;
    for (; params->multiplier == 1 && k + 8 <= outputs; k += 8) {
        if (to->sums != NULL) {
            add_8(from, k, to->sums + line + k);
            continue;
        }
        float sums[8] = {0.0f};
        add_8(from, k, sums);
        for (int32_t i = 0; i < 8; i++) {
            mcud_store_result_f32(to, line + k + i, sums[i]);
        }
    }
    for (int32_t c = k / params->multiplier; k < outputs; c++) {
        for (int32_t m = 0; m < params->multiplier; m++, k++) {
            if (to->sums != NULL) {
                to->sums[line + k] = add_1(from, k, c, to->sums[line + k]);
            } else {
                mcud_store_result_f32(to, line + k, add_1(from, k, c, 0.0f));
            }
        }
    }
}

void mcud_dwconv2d_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dwconv2d_f32_update_params *params = op->params;
    const int32_t outputs = params->dims.output_channels;
    mcud_tap_pixels_f32 from = {
        .op = op, .dims = &params->dims, .window = &params->window, .step = {first_row, end_row}};
    mcud_update_f32 to = {.in_place = params->in_place};
    mcud_start_update_f32(&from, &to, params->output_rows, params->factor);
    const int32_t count = outputs * params->window.kernel_rows * params->window.kernel_cols;
    mcud_begin_sums_f32(&to, count);
    for (int32_t r = 0, line = 0; r < params->window.kernel_rows; r++) {
        mcud_tap_row_f32(&from, r);
        for (int32_t s = 0; s < params->window.kernel_cols; s++, line += outputs) {
            mcud_tap_column_f32(&from, s);
            update_tap(&from, &to, line);
        }
    }
    mcud_end_sums_f32(&to, count);
}
