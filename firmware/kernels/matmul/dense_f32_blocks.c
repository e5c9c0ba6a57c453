#include "dense_f32_blocks.h"

#include "mcud_blocks_f32.h"
#include "mcud_dot_f32.h"

/* The weights of four channels, and memory for widened ones. */
typedef struct {
    mcud_blocks_f32 from;
    float *widened; /* [MCUD_WIDENED_VALUES][4] */
} four_channels;

/* Adds to sums[pixels][4] the products of weights w with x[values] of one pixel, or of four pixels `depth` values
 * apart. */
static void add_widened(const four_channels *four, const uint32_t *w, const float *x, int32_t values, int32_t pixels,
                        float *sums)
{
    for (; values > 0; values -= MCUD_WIDENED_VALUES) {
        const int32_t some = values < MCUD_WIDENED_VALUES ? values : MCUD_WIDENED_VALUES;
        mcud_widen_blocks_f32(w, four->from.bits, some, four->widened);
        if (pixels == 1) {
            mcud_add_1x4_f32(x, four->widened, some, sums);
        } else {
            mcud_add_4x4_f32(x, four->from.depth, four->widened, some, sums);
        }
        x += some;
        w += MCUD_WIDENED_VALUES * four->from.bits / 8;
    }
}

/* Multiplies 1 or 4 pixels x[pixels][depth]; results[pixels][4] start as the biases. */
static void multiply(const four_channels *four, const float *x, int32_t pixels, float *results)
{
    const mcud_blocks_f32 *from = &four->from;
    const float *scale = from->scale;
    const int8_t *zero = from->zero;
    const uint32_t *w = from->weights;
    for (int32_t left = from->depth; left > 0; left -= from->block, x += from->block, scale += 4) {
        const int32_t values = left < from->block ? left : from->block;
        float sums[16] = {0.0f};
        add_widened(four, w, x, values, pixels, sums);
        for (int32_t pixel = 0; pixel < pixels; pixel++) {
            const float total = zero != NULL ? mcud_total_f32(x + pixel * from->depth, values) : 0.0f;
            mcud_add_block_f32(scale, zero, total, sums + 4 * pixel, results + 4 * pixel);
        }
        w += from->block * from->bits / 8;
        zero = zero != NULL ? zero + 4 : NULL;
    }
}

/* Multiplies a pixel x[depth] by packed weights of 4 bits; results[4] start as the biases. */
static void multiply_in_place(const mcud_blocks_f32 *from, const float *x, float results[4])
{
    const float *scale = from->scale;
    const int8_t *zero = from->zero;
    const uint32_t *w = from->weights;
    for (int32_t left = from->depth; left > 0; left -= from->block, x += from->block, scale += 4) {
        const int32_t values = left < from->block ? left : from->block;
        float sums[4] = {0.0f};
        mcud_add_1x4_s4(x, w, values, sums);
        mcud_add_block_f32(scale, zero, zero != NULL ? mcud_total_f32(x, values) : 0.0f, sums, results);
        w += from->block / 2;
        zero = zero != NULL ? zero + 4 : NULL;
    }
}

/* Computes y[pixels][output_channels] from x[pixels][input_channels], for 1 or 4 pixels. */
static void layer(const mcud_dense_f32_blocks_params *params, float *widened, const float *x, int32_t pixels, float *y)
{
    four_channels four = {
        .from = {(const uint32_t *)params->weights, params->scale, params->zero, params->dims.input_channels,
                 params->block, params->bits},
        .widened = widened,
    };
    const int32_t channels = params->dims.output_channels;
    const int32_t scales = 4 * ((four.from.depth + four.from.block - 1) / four.from.block);
    for (int32_t k = 0; k < channels; k += 4) {
        float results[16] = {0.0f};
        if (params->bias != NULL) {
            mcud_begin_f32(params->bias + k, pixels, results);
        }
        if (pixels == 1 && params->bits == 4) {
            multiply_in_place(&four.from, x, results);
        } else {
            multiply(&four, x, pixels, results);
        }
        for (int32_t pixel = 0; pixel < pixels; pixel++) {
            mcud_finish_f32(&params->act, results + 4 * pixel, channels - k, y + pixel * channels + k);
        }
        four.from.weights += mcud_block_words(&four.from);
        four.from.scale += scales;
        four.from.zero = four.from.zero != NULL ? four.from.zero + scales : NULL;
    }
}

void mcud_dense_f32_blocks(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_dense_f32_blocks_params *params = op->params;
    float *widened = op->scratch != NULL ? mcud_row(op->scratch, first_row) : NULL;
    float *out = mcud_row(op->out, first_row);
    for (int32_t row = first_row; row < end_row;) {
        const float *in = mcud_row(op->in[0], row);
        const int32_t run_end = mcud_run_end(op->in[0], row, end_row);
        for (int32_t left = (run_end - row) * params->dims.output_cols; left > 0;) {
            const int32_t pixels = left >= 4 ? 4 : 1;
            layer(params, widened, in, pixels, out);
            in += pixels * params->dims.input_channels;
            out += pixels * params->dims.output_channels;
            left -= pixels;
        }
        row = run_end;
    }
}
