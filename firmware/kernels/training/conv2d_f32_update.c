#include "conv2d_f32_update.h"

#include "mcud_tap_pixels_f32.h"

/* Weights of `outputs` output channels from k on, which are 1 or 4, by `inputs` input channels from c on, which are 1
 * or 4, or with four output channels any multiple of 4. */
typedef struct {
    int32_t k;
    int32_t outputs;
    int32_t c;
    int32_t inputs;
} block;

/* Adds the products of four output channels with input channels, four at a time, at all pixels of a tap. The sums
 * of output channels lie `pitch` apart. */
static void add_4x4(const mcud_tap_pixels_f32 *from, const block *of, float *sums, int32_t pitch)
{
    for (int32_t c = of->c; c < of->c + of->inputs; c += 4, sums += 4) {
        float *const line1 = sums + pitch;
        float *const line2 = line1 + pitch;
        float *const line3 = line2 + pitch;
        float a0 = sums[0], a1 = sums[1], a2 = sums[2], a3 = sums[3];
        float b0 = line1[0], b1 = line1[1], b2 = line1[2], b3 = line1[3];
        float c0 = line2[0], c1 = line2[1], c2 = line2[2], c3 = line2[3];
        float d0 = line3[0], d1 = line3[1], d2 = line3[2], d3 = line3[3];
        for (int32_t row = from->rows.first; row < from->rows.end; row++) {
            const float *x = mcud_tap_input_f32(from, row) + c;
            const float *g = mcud_tap_gradient_f32(from, row) + of->k;
            for (int32_t col = 0; col < from->cols.count; col++) {
                const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
                const float g0 = g[0], g1 = g[1], g2 = g[2], g3 = g[3];
                a0 = mcud_fused_f32(g0, x0, a0);
                a1 = mcud_fused_f32(g0, x1, a1);
                a2 = mcud_fused_f32(g0, x2, a2);
                a3 = mcud_fused_f32(g0, x3, a3);
                b0 = mcud_fused_f32(g1, x0, b0);
                b1 = mcud_fused_f32(g1, x1, b1);
                b2 = mcud_fused_f32(g1, x2, b2);
                b3 = mcud_fused_f32(g1, x3, b3);
                c0 = mcud_fused_f32(g2, x0, c0);
                c1 = mcud_fused_f32(g2, x1, c1);
                c2 = mcud_fused_f32(g2, x2, c2);
                c3 = mcud_fused_f32(g2, x3, c3);
                d0 = mcud_fused_f32(g3, x0, d0);
                d1 = mcud_fused_f32(g3, x1, d1);
                d2 = mcud_fused_f32(g3, x2, d2);
                d3 = mcud_fused_f32(g3, x3, d3);
                x += from->cols.w_pitch;
                g += from->cols.x_pitch;
            }
        }
        sums[0] = a0, sums[1] = a1, sums[2] = a2, sums[3] = a3;
        line1[0] = b0, line1[1] = b1, line1[2] = b2, line1[3] = b3;
        line2[0] = c0, line2[1] = c1, line2[2] = c2, line2[3] = c3;
        line3[0] = d0, line3[1] = d1, line3[2] = d2, line3[3] = d3;
    }
}

/* The same for one output channel, or one input channel, or both: up to four sums, `apart` from each other. */
static void add_line(const mcud_tap_pixels_f32 *from, const block *of, float *sums, int32_t apart)
{
    const mcud_terms_f32 *const cols = &from->cols;
    const mcud_terms_f32 crossed = {cols->count, cols->w_pitch, cols->x_pitch};
    const int32_t count = of->outputs * of->inputs;
    float line[4] = {0.0f};
    for (int32_t i = 0; i < count; i++) {
        line[i] = sums[i * apart];
    }
    for (int32_t row = from->rows.first; row < from->rows.end; row++) {
        const float *x = mcud_tap_input_f32(from, row) + of->c;
        const float *g = mcud_tap_gradient_f32(from, row) + of->k;
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

/* Adds the products of a block to its sums, where output channels lie `pitch` apart. */
static void add_block(const mcud_tap_pixels_f32 *from, const block *of, float *sums, int32_t pitch)
{
    if (of->outputs == 4 && of->inputs >= 4) {
        add_4x4(from, of, sums, pitch);
    } else {
        add_line(from, of, sums, of->inputs == 4 ? 1 : pitch);
    }
}

/* Stores the results of a block whose sums are in no memory; `line`: the place of its first weight. */
static void store_block(const mcud_tap_pixels_f32 *from, const mcud_update_f32 *to, const block *of, int32_t line,
                        int32_t pitch)
{
    float sums[16] = {0.0f};
    add_block(from, of, sums, 4);
    for (int32_t i = 0; i < of->outputs; i++) {
        for (int32_t j = 0; j < of->inputs; j++) {
            mcud_store_result_f32(to, line + i * pitch + j, sums[4 * i + j]);
        }
    }
}

/* The result for a gradient of one pixel: the gradient of a weight is one product, x times g. */
static void update_line_by_pixel(const mcud_update_f32 *to, int32_t line, int32_t inputs, const float *x,
                                 float g)
{
    const float *weights = (to->in_place ? to->out : to->before) + line; /* a sum in place is decayed already */
    float *out = to->out + line;
    const float decay = to->in_place ? 1.0f : to->decay;
    const float factor = to->step * g;
    int32_t c = 0;
    for (; c + 4 <= inputs; c += 4) { /* reads four weights before it writes, as out may be their memory */
        const float w0 = mcud_fused_f32(factor, x[c], decay * weights[c]);
        const float w1 = mcud_fused_f32(factor, x[c + 1], decay * weights[c + 1]);
        const float w2 = mcud_fused_f32(factor, x[c + 2], decay * weights[c + 2]);
        const float w3 = mcud_fused_f32(factor, x[c + 3], decay * weights[c + 3]);
        out[c] = w0;
        out[c + 1] = w1;
        out[c + 2] = w2;
        out[c + 3] = w3;
    }
    for (; c < inputs; c++) {
        out[c] = mcud_fused_f32(factor, x[c], decay * weights[c]);
    }
}

/* The weights of all output channels at a tap. */
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
    block of = {0, 0, 0, 0};
    for (; of.k < outputs; of.k += of.outputs, line += of.outputs * pitch) {
        of.outputs = outputs - of.k < 4 ? 1 : 4;
        for (of.c = 0; of.c < inputs; of.c += of.inputs) {
            of.inputs = inputs - of.c < 4 ? 1 : 4;
            if (of.inputs == 4 && of.outputs == 4 && to->sums != NULL) {
                of.inputs = inputs & ~3;
            }
            if (to->sums != NULL) {
                add_block(from, &of, to->sums + line + of.c, pitch);
            } else {
                store_block(from, to, &of, line + of.c, pitch);
            }
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
