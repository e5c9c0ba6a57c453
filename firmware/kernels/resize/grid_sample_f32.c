#include "grid_sample_f32.h"

#include <math.h>

enum { ZEROS, BORDER, REFLECTION, MOST_TAPS = 4 };

/* The neighbours of a pixel along one axis: their positions, negative if there is none, and their weights. */
typedef struct {
    int32_t places[MOST_TAPS];
    float weights[MOST_TAPS];
} neighbours;

/* The value, clamped to the bounds; the lower bound for NaN. */
static float bounded(float value, float low, float high)
{
    if (!(value > low)) {
        return low;
    }
    return value < high ? value : high;
}

/* The value, reflected at both bounds until it is between them. */
static float reflected(float value, float low, float high)
{
    const float range = high - low;
    const float beyond = value < low ? low - value : value - high;
    if (value >= low && value <= high) {
        return value;
    }
    if (!(range > 0.0f)) {
        return low;
    }
    const float folds = floorf(beyond / range);
    const float rest = beyond - folds * range;
    const int from_low = (value < low) == (floorf(folds / 2.0f) * 2.0f == folds);
    return from_low ? low + rest : high - rest;
}

/* The position by which padding replaces one outside the image. */
static float padded(const mcud_grid_sample_f32_params *params, float value, int32_t size)
{
    const float edge = params->align_corners != 0 ? 0.0f : 0.5f;
    const float last = (float)(size - 1);
    if (params->padding == ZEROS || (value >= -edge && value <= last + edge)) {
        return value;
    }
    return params->padding == BORDER ? bounded(value, 0.0f, last) : reflected(value, -edge, last + edge);
}

/* The position of a neighbour in the image; -1 if it counts as zero. */
static int32_t place_of(const mcud_grid_sample_f32_params *params, float value, int32_t size)
{
    const int32_t place = (int32_t)bounded(padded(params, value, size), -1.0f, (float)size);
    if (params->padding == ZEROS) {
        return place < size ? place : -1;
    }
    return place < 0 ? 0 : place < size ? place : size - 1;
}

static void cubic_weights(float part, float *weights)
{
    const float a = -0.75f;
    for (int32_t tap = 0; tap < 4; tap++) {
        const float x = fabsf(part + 1.0f - (float)tap);
        weights[tap] = x < 1.0f ? ((a + 2.0f) * x - (a + 3.0f)) * x * x + 1.0f : (((x - 5.0f) * x + 8.0f) * x - 4.0f) * a;
    }
}

static void find(const mcud_grid_sample_f32_params *params, float coordinate, int32_t size, neighbours *found)
{
    const float edge = params->align_corners != 0 ? 0.0f : 0.5f;
    const float span = (float)(size - 1) + 2.0f * edge;
    float value = (coordinate + 1.0f) / 2.0f * span - edge;
    if (params->taps == 1) {
        found->places[0] = place_of(params, nearbyintf(value), size);
        found->weights[0] = 1.0f;
        return;
    }
    if (params->padding == REFLECTION) {
        value = padded(params, value, size);
    }
    value = bounded(value, -4.0f, (float)size + 4.0f); /* neighbours, not positions, end at a border */
    const float below = floorf(value);
    const float part = value - below;
    const int32_t before = params->taps / 2 - 1;
    for (int32_t tap = 0; tap < params->taps; tap++) {
        found->places[tap] = place_of(params, below + (float)(tap - before), size);
    }
    if (params->taps == 4) {
        cubic_weights(part, found->weights);
    } else {
        found->weights[0] = 1.0f - part;
        found->weights[1] = part;
    }
}

static void add_weighted(float *sum, const float *in, float weight, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum[i] += weight * in[i];
    }
}

static void sample(const mcud_op *op, const float *place, float *out)
{
    const mcud_grid_sample_f32_params *params = op->params;
    neighbours x;
    neighbours y;
    find(params, place[0], params->cols, &x);
    find(params, place[1], params->rows, &y);
    for (int32_t i = 0; i < params->channels; i++) {
        out[i] = 0.0f;
    }
    for (int32_t row = 0; row < params->taps; row++) {
        if (y.places[row] < 0) {
            continue;
        }
        const float *in = mcud_row(op->in[0], y.places[row]);
        for (int32_t col = 0; col < params->taps; col++) {
            if (x.places[col] >= 0) {
                const float weight = y.weights[row] * x.weights[col];
                add_weighted(out, in + x.places[col] * params->channels, weight, params->channels);
            }
        }
    }
}

void mcud_grid_sample_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_grid_sample_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *grid = mcud_row(op->in[1], row);
        float *out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->output_cols; col++) {
            sample(op, grid + 2 * col, out + col * params->channels);
        }
    }
}
