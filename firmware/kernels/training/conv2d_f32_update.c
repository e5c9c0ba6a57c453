#include "conv2d_f32_update.h"

#include "mcud_outer_f32.h"
#include "mcud_tap_pixels_f32.h"

/* Weights of `outputs` output channels from k on by `inputs` input channels from c on: 1 or 4 by 4, 4 by any multiple
 * of 4, or 1, 4 or any multiple of 16 by 1. */
typedef struct {
    int32_t k;
    int32_t outputs;
    int32_t c;
    int32_t inputs;
} block;

/* Adds the products of four output channels with input channels, four at a time, at all pixels of a tap. Sums of output
 * channels are `pitch` values apart. */
static void add_4x4(const mcud_tap_pixels_f32 *from, const block *of, float *sums, int32_t pitch)
{
    const mcud_terms_f32 cols = from->cols; /* a copy, since a store to sums might change *from */
    for (int32_t run = from->runs.first; run < from->runs.end; run++) {
        const float *x = mcud_tap_input_f32(from, run) + of->c;
        const float *g = mcud_tap_gradient_f32(from, run) + of->k;
        float *to = sums;
        for (const float *const end = x + of->inputs; x != end; x += 4, to += 4) {
            mcud_add_outer_4x4_f32(g, x, &cols, to, pitch);
        }
    }
}

/* The same for one input channel and output channels, 16 at a time. */
static void add_16x1(const mcud_tap_pixels_f32 *from, const block *of, float *sums, int32_t pitch)
{
    const mcud_terms_f32 cols = from->cols;
    for (int32_t k = of->k; k < of->k + of->outputs; k += 16) {
        float line[16];
        float *place = sums;
        for (int32_t i = 0; i < 16; i += 4, place += 4 * pitch) {
            line[i] = place[0];
            line[i + 1] = place[pitch];
            line[i + 2] = place[2 * pitch];
            line[i + 3] = place[3 * pitch];
        }
        for (int32_t run = from->runs.first; run < from->runs.end; run++) {
            const float *x = mcud_tap_input_f32(from, run) + of->c;
            mcud_add_outer_16x1_f32(mcud_tap_gradient_f32(from, run) + k, x, &cols, line);
        }
        for (int32_t i = 0; i < 16; i += 4, sums += 4 * pitch) {
            sums[0] = line[i];
            sums[pitch] = line[i + 1];
            sums[2 * pitch] = line[i + 2];
            sums[3 * pitch] = line[i + 3];
        }
    }
}

/* The same for 1 or 4 output channels and 1 input channel, or 1 output channel and 4 input channels; sums are `apart`
 * values apart. */
static void add_line(const mcud_tap_pixels_f32 *from, const block *of, float *sums, int32_t apart)
{
    const mcud_terms_f32 *const cols = &from->cols;
    const mcud_terms_f32 crossed = {cols->count, cols->w_pitch, cols->x_pitch};
    const int32_t count = of->outputs * of->inputs;
    float line[4] = {0.0f};
    for (int32_t i = 0; i < count; i++) {
        line[i] = sums[i * apart];
    }
    for (int32_t run = from->runs.first; run < from->runs.end; run++) {
        const float *x = mcud_tap_input_f32(from, run) + of->c;
        const float *g = mcud_tap_gradient_f32(from, run) + of->k;
        if (of->inputs == 4) {
            mcud_add_terms_4_f32(g, x, cols, line);
        } else if (of->outputs == 4) {
            mcud_add_terms_4_f32(x, g, &crossed, line);
        } else {
            line[0] = mcud_add_terms_f32(g, x, cols, line[0]);
        }
    }
    for (int32_t i = 0; i < count; i++) {
        sums[i * apart] = line[i];
    }
}

/* Adds the products of a block to its sums, whose output channels are `pitch` values apart. */
static void add_block(const mcud_tap_pixels_f32 *from, const block *of, float *sums, int32_t pitch)
{
    if (of->outputs == 4 && of->inputs >= 4) {
        add_4x4(from, of, sums, pitch);
    } else if (of->outputs >= 16) {
        add_16x1(from, of, sums, pitch);
    } else {
        add_line(from, of, sums, of->inputs == 4 ? 1 : pitch);
    }
}

/* Adds the products of a block to the sums, or stores its results if there is no memory for sums; `line`: the index of
 * its first weight. */
static void update_block(const mcud_tap_pixels_f32 *from, const mcud_update_f32 *to, const block *of, int32_t line,
                         int32_t pitch)
{
    if (to->sums != NULL) {
        add_block(from, of, to->sums + line, pitch);
        return;
    }
    float sums[16] = {0.0f};
    add_block(from, of, sums, of->inputs);
    for (int32_t i = 0; i < of->outputs; i++) {
        for (int32_t j = 0; j < of->inputs; j++) {
            mcud_store_result_f32(to, line + i * pitch + j, sums[of->inputs * i + j]);
        }
    }
}

/* Stores results for a gradient of one pixel, where the gradient of a weight is one product, x times g. */
static void update_line_by_pixel(const mcud_update_f32 *to, int32_t line, int32_t inputs, const float *x,
                                 float g)
{
    const float *weights = (to->in_place ? to->out : to->before) + line; /* a sum in place has decayed already */
    float *out = to->out + line;
    const float decay = to->in_place ? 1.0f : to->decay;
    const float factor = to->step * g;
    int32_t c = 0;
    for (; c + 4 <= inputs; c += 4) { /* reads four weights before it writes, as out may be their memory */
        const float w0 = mcud_mac_f32(factor, x[c], decay * weights[c]);
        const float w1 = mcud_mac_f32(factor, x[c + 1], decay * weights[c + 1]);
        const float w2 = mcud_mac_f32(factor, x[c + 2], decay * weights[c + 2]);
        const float w3 = mcud_mac_f32(factor, x[c + 3], decay * weights[c + 3]);
        out[c] = w0;
        out[c + 1] = w1;
        out[c + 2] = w2;
        out[c + 3] = w3;
    }
    for (; c < inputs; c++) {
        out[c] = mcud_mac_f32(factor, x[c], decay * weights[c]);
    }
}

/* Updates the weights of all output channels at a tap. */
static void update_tap(const mcud_tap_pixels_f32 *from, const mcud_update_f32 *to, int32_t tap)
{
    const mcud_conv2d_f32_update_params *params = from->op->params;
    const int32_t inputs = params->dims.input_channels;
    const int32_t outputs = params->dims.output_channels;
    const int32_t pitch = params->window.kernel_rows * params->window.kernel_cols * inputs;
    int32_t line = tap * inputs;
    const int32_t inside = from->rows.first < from->rows.end && from->cols.count > 0;
    if (!inside && to->sums != NULL) {
        return;
    }
    if (inside && params->output_rows == 1 && params->dims.output_cols == 1) {
        const float *x = mcud_tap_input_f32(from, 0);
        const float *g = mcud_tap_gradient_f32(from, 0);
        for (int32_t k = 0; k < outputs; k++, line += pitch) {
            update_line_by_pixel(to, line, inputs, x, g[k]);
        }
        return;
    }
    const int32_t by_fours = inputs & ~3;
    block of = {0, 0, 0, 0};
    for (; by_fours > 0 && of.k < outputs; of.k += of.outputs) {
        of.outputs = outputs - of.k < 4 ? 1 : 4;
        of.inputs = to->sums != NULL && of.outputs == 4 ? by_fours : 4;
        for (of.c = 0; of.c < by_fours; of.c += of.inputs) {
            update_block(from, to, &of, line + of.k * pitch + of.c, pitch);
        }
    }
    of.inputs = 1;
    for (of.c = by_fours; of.c < inputs; of.c++) {
        for (of.k = 0; of.k < outputs; of.k += of.outputs) {
            const int32_t left = outputs - of.k;
            of.outputs = left < 4 ? 1 : left < 16 ? 4 : to->sums != NULL ? left & ~15 : 16;
            update_block(from, to, &of, line + of.k * pitch + of.c, pitch);
        }
    }
}

void mcud_conv2d_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_conv2d_f32_update_params *params = op->params;
    mcud_tap_pixels_f32 from = {
        .op = op, .dims = &params->dims, .window = &params->window, .step = {first_row, end_row}};
    mcud_update_f32 to = {.in_place = params->in_place};
    mcud_start_update_f32(&from, &to, params->output_rows, params->factor);
    const int32_t count = params->dims.output_channels * params->window.kernel_rows * params->window.kernel_cols *
                          params->dims.input_channels;
    mcud_begin_sums_f32(&to, count);
    for (int32_t r = 0; r < params->window.kernel_rows; r++) {
        mcud_tap_row_f32(&from, r);
        for (int32_t s = 0; s < params->window.kernel_cols; s++) {
            mcud_tap_column_f32(&from, s);
            update_tap(&from, &to, r * params->window.kernel_cols + s);
        }
    }
    mcud_end_sums_f32(&to, count);
}
