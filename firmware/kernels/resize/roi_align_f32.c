#include "roi_align_f32.h"

#include <math.h>
#include <stddef.h>

/* One side of a bin: where it begins, its length, and how many samples it has. */
typedef struct {
    float start;
    float length;
    int32_t samples;
} side;

/* The two elements on either side of a sample, and their weights. */
typedef struct {
    int32_t low;
    int32_t high;
    float low_weight;
    float high_weight;
} between;

static side side_of(const mcud_roi_align_f32_params *params, float first, float last, int32_t bins, int32_t size)
{
    const float start = first * params->scale - params->offset;
    float length = last * params->scale - params->offset - start;
    if (!params->shrunk && !(length >= 1.0f)) {
        length = 1.0f;
    }
    side made = {start, length / (float)bins, params->samples};
    if (params->samples == 0) {
        const float wanted = ceilf(made.length);
        const float most = 2.0f * (float)size;
        made.samples = wanted > 0.0f ? (int32_t)(wanted < most ? wanted : most) : 0;
    }
    return made;
}

/* Returns 0 if the sample is outside. */
static int place(const side *bin, int32_t number, int32_t sample, int32_t size, between *found)
{
    float at = bin->start + (float)number * bin->length +
               ((float)sample + 0.5f) * bin->length / (float)bin->samples;
    if (!(at >= -1.0f && at <= (float)size)) {
        return 0;
    }
    at = at > 0.0f ? at : 0.0f;
    found->low = (int32_t)at;
    found->high = found->low + 1;
    if (found->low >= size - 1) {
        found->low = size - 1;
        found->high = size - 1;
        at = (float)found->low;
    }
    found->high_weight = at - (float)found->low;
    found->low_weight = 1.0f - found->high_weight;
    return 1;
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

/* Accumulates one sample in all channels of the bin. */
static void take(const mcud_roi_align_f32_params *params, const float *const *elements, const float *weights,
                 int first, float *out)
{
    for (int32_t c = 0; c < params->channels; c++) {
        if (!params->largest) {
            out[c] += weights[0] * elements[0][c] + weights[1] * elements[1][c] + weights[2] * elements[2][c] +
                      weights[3] * elements[3][c];
            continue;
        }
        float most = weights[0] * elements[0][c];
        for (int32_t i = 1; i < 4; i++) {
            most = larger(most, weights[i] * elements[i][c]);
        }
        out[c] = first ? most : larger(out[c], most);
    }
}

static void one_sample(const mcud_op *op, const between *y, const between *x, int first, float *out)
{
    const mcud_roi_align_f32_params *params = op->params;
    const float *low = mcud_row(op->in[0], y->low);
    const float *high = mcud_row(op->in[0], y->high);
    const float *elements[4] = {low + x->low * params->channels, low + x->high * params->channels,
                                high + x->low * params->channels, high + x->high * params->channels};
    const float weights[4] = {y->low_weight * x->low_weight, y->low_weight * x->high_weight,
                              y->high_weight * x->low_weight, y->high_weight * x->high_weight};
    take(params, elements, weights, first, out);
}

static void one_bin(const mcud_op *op, const side *height, const side *width, const int32_t number[2], float *out)
{
    const mcud_roi_align_f32_params *params = op->params;
    const int32_t count = height->samples * width->samples;
    const between nowhere = {0, 0, 0.0f, 0.0f};
    for (int32_t c = 0; c < params->channels; c++) {
        out[c] = 0.0f;
    }
    for (int32_t i = 0; i < height->samples; i++) {
        between y = nowhere;
        const int row_inside = place(height, number[0], i, params->input_rows, &y);
        for (int32_t j = 0; j < width->samples; j++) {
            between x = nowhere;
            if (row_inside && place(width, number[1], j, params->input_cols, &x)) {
                one_sample(op, &y, &x, i + j == 0, out);
            } else if (params->largest) {
                one_sample(op, &nowhere, &nowhere, i + j == 0, out);
            }
        }
    }
    for (int32_t c = 0; c < params->channels && !params->largest && count > 1; c++) {
        out[c] /= (float)count;
    }
}

void mcud_roi_align_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_roi_align_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t number = row / params->bin_rows;
        const float *region =
            params->regions != NULL ? params->regions + 4 * number : (const float *)mcud_row(op->in[1], number);
        const side height = side_of(params, region[1], region[3], params->bin_rows, params->input_rows);
        const side width = side_of(params, region[0], region[2], params->bin_cols, params->input_cols);
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->bin_cols; col++, out += params->channels) {
            const int32_t bin[2] = {row % params->bin_rows, col};
            one_bin(op, &height, &width, bin, out);
        }
    }
}
