#include "attend_f32.h"

#include <string.h>

#include "mcud_attend.h"
#include "mcud_simd_f32.h"
#include "mcud_unpacked_f32.h"

/* Computes the weights of the rows of `key`, not yet divided by their sum; returns the sum. */
static float weigh(const mcud_attend_heads *of, const float *query, const float *key, int32_t count,
                   float *weights)
{
    const int32_t pitch = of->key_pitch;
    int32_t row = 0;
    for (; row + 4 <= count; row += 4, key += 4 * pitch) {
        weights[row] = weights[row + 1] = weights[row + 2] = weights[row + 3] = 0.0f;
        mcud_add_unpacked_1x4_f32(query, key, pitch, of->depth, weights + row);
    }
    for (; row < count; row++, key += pitch) {
        float sum = 0.0f;
        for (int32_t i = 0; i < of->depth; i++) {
            sum = mcud_mac_f32(query[i], key[i], sum);
        }
        weights[row] = sum;
    }
    return mcud_weigh_f32(weights, count, of->scale);
}

/* Computes the sum of the rows of `value` times their weights. */
static void mix(const mcud_attend_heads *of, const float *weights, const float *value, int32_t count,
                float *out)
{
    const int32_t pitch = of->value_pitch;
    int32_t j = 0;
    memset(out, 0, (size_t)of->width * sizeof *out);
    for (; j + 8 <= of->width; j += 8) {
        mcud_add_lines_8_f32(weights, value + j, pitch, count, out + j);
    }
    for (; j < of->width; j++) {
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
    const mcud_attend_heads *of = &params->of;
    const int64_t position = *(const int32_t *)mcud_row(op->in[0], 0);
    const float *query = mcud_row(op->in[1], 0);
    const float *keys = mcud_row(op->in[2], 0);
    const float *values = mcud_row(op->in[3], 0);
    float *out = mcud_row(op->out, first_row);
    float *weights = mcud_row(op->scratch, 0);
    const mcud_attended rows = mcud_attended_rows(&params->live, position);
    for (int32_t head = 0; head < of->heads; head++) {
        const int32_t shared = head / of->group;
        const float *key = keys + shared * of->key_head + rows.first * of->key_pitch;
        const float *value = values + shared * of->value_head + rows.first * of->value_pitch;
        const float sum = rows.alike ? mcud_weigh_alike_f32(weights, rows.count)
                                     : weigh(of, query, key, rows.count, weights);
        mix(of, weights, value, rows.count, out);
        for (int32_t i = 0; i < of->width; i++) {
            out[i] /= sum;
        }
        query += of->depth;
        out += of->width;
    }
}
