#include "attend_f32.h"

#include <string.h>

#include "mcud_exponential_f32.h"
#include "mcud_simd_f32.h"
#include "mcud_unpacked_f32.h"

static int32_t clipped(int64_t row, int32_t count)
{
    return row < 0 ? 0 : row > count ? count : (int32_t)row;
}

/* Weights of the rows of `key`, not yet divided by their sum, which it returns. */
static float weigh(const mcud_attend_f32_params *params, const float *query, const float *key, int32_t count,
                   float *weights)
{
    const int32_t pitch = params->key_pitch;
    int32_t row = 0;
    for (; row + 4 <= count; row += 4, key += 4 * pitch) {
        weights[row] = weights[row + 1] = weights[row + 2] = weights[row + 3] = 0.0f;
        mcud_add_unpacked_1x4_f32(query, key, pitch, params->depth, weights + row);
    }
    for (; row < count; row++, key += pitch) {
        float sum = 0.0f;
        for (int32_t i = 0; i < params->depth; i++) {
            sum = mcud_mac_f32(query[i], key[i], sum);
        }
        weights[row] = sum;
    }
    float largest = weights[0];
    for (int32_t i = 1; i < count; i++) {
        const float weight = weights[i];
        largest = params->scale < 0.0f ? (weight < largest ? weight : largest) : (weight > largest ? weight : largest);
    }
    float sum = 0.0f;
    for (int32_t i = 0; i < count; i++) {
        weights[i] = mcud_expf((weights[i] - largest) * params->scale);
        sum += weights[i];
    }
    return sum;
}

/* The sum of the rows of `value` by their weights. */
static void mix(const mcud_attend_f32_params *params, const float *weights, const float *value, int32_t count,
                float *out)
{
    const int32_t pitch = params->value_pitch;
    int32_t j = 0;
    memset(out, 0, (size_t)params->width * sizeof *out);
    for (; j + 8 <= params->width; j += 8) {
        mcud_add_lines_8_f32(weights, value + j, pitch, count, out + j);
    }
    for (; j < params->width; j++) {
        float sum = 0.0f;
        for (int32_t row = 0; row < count; row++) {
            sum = mcud_mac_f32(weights[row], value[row * pitch + j], sum);
        }
        out[j] = sum;
    }
}

void mcud_attend_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_attend_f32_params *params = op->params;
    const int64_t position = *(const int32_t *)mcud_row(op->in[0], 0);
    const float *query = mcud_row(op->in[1], 0);
    const float *keys = mcud_row(op->in[2], 0);
    const float *values = mcud_row(op->in[3], 0);
    float *out = mcud_row(op->out, first_row);
    float *weights = mcud_row(op->scratch, 0);
    const int32_t first = clipped(params->first + params->first_step * position, params->count);
    const int32_t end = clipped(params->end + params->end_step * position, params->count);
    const int32_t live = end > first ? end - first : params->count;
    const int32_t start = end > first ? first : 0;
    for (int32_t head = 0; head < params->heads; head++) {
        const int32_t shared = head / params->group;
        float sum = (float)live;
        if (end > first) {
            sum = weigh(params, query, keys + shared * params->key_head + start * params->key_pitch, live, weights);
        } else {
            for (int32_t row = 0; row < live; row++) {
                weights[row] = 1.0f;
            }
        }
        mix(params, weights, values + shared * params->value_head + start * params->value_pitch, live, out);
        for (int32_t i = 0; i < params->width; i++) {
            out[i] /= sum;
        }
        query += params->depth;
        out += params->width;
    }
}
