#include "attend_s8.h"

#include <stddef.h>

#include "mcud_attend.h"
#include "mcud_simd_f32.h"

/* Adds the products of a query with the integers of four keys to sums[4]. */
static void add_4(const float *query, const int8_t *key, int32_t pitch, int32_t depth, float sums[4])
{
    const int8_t *k1 = key + pitch;
    const int8_t *k2 = k1 + pitch;
    const int8_t *k3 = k2 + pitch;
    float a = 0.0f;
    float b = 0.0f;
    float c = 0.0f;
    float d = 0.0f;
    for (const float *const end = query + depth; query != end; query++) {
        a = mcud_mac_f32(*query, (float)*key++, a);
        b = mcud_mac_f32(*query, (float)*k1++, b);
        c = mcud_mac_f32(*query, (float)*k2++, c);
        d = mcud_mac_f32(*query, (float)*k3++, d);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

static void apply(const mcud_row_scales *scales, const float *scale, int32_t count, float *weights)
{
    for (int32_t row = 0; row < count; row++, scale += scales->pitch) {
        weights[row] *= *scale;
    }
}

/* Computes the weights of the rows of `key`, not yet divided by their sum; returns the sum. */
static float weigh(const mcud_attend_s8_params *params, const float *query, const int8_t *key, const float *scale,
                   int32_t count, float *weights)
{
    const int32_t pitch = params->of.key_pitch;
    int32_t row = 0;
    for (; row + 4 <= count; row += 4, key += 4 * pitch) {
        add_4(query, key, pitch, params->of.depth, weights + row);
    }
    for (; row < count; row++, key += pitch) {
        float sum = 0.0f;
        for (int32_t i = 0; i < params->of.depth; i++) {
            sum = mcud_mac_f32(query[i], (float)key[i], sum);
        }
        weights[row] = sum;
    }
    if (params->scaled) {
        apply(&params->key_scales, scale, count, weights);
    }
    return mcud_weigh_f32(weights, count, params->of.scale);
}

/* Computes eight columns of the sum of the rows of `value` times their weights, divided by `divisor`. */
static void mix_8(const float *weights, const int8_t *value, int32_t pitch, int32_t count, float divisor, float *out)
{
    float s0 = 0.0f;
    float s1 = 0.0f;
    float s2 = 0.0f;
    float s3 = 0.0f;
    float s4 = 0.0f;
    float s5 = 0.0f;
    float s6 = 0.0f;
    float s7 = 0.0f;
    for (const float *const end = weights + count; weights != end; weights++, value += pitch) {
        const float weight = *weights;
        s0 = mcud_mac_f32(weight, (float)value[0], s0);
        s1 = mcud_mac_f32(weight, (float)value[1], s1);
        s2 = mcud_mac_f32(weight, (float)value[2], s2);
        s3 = mcud_mac_f32(weight, (float)value[3], s3);
        s4 = mcud_mac_f32(weight, (float)value[4], s4);
        s5 = mcud_mac_f32(weight, (float)value[5], s5);
        s6 = mcud_mac_f32(weight, (float)value[6], s6);
        s7 = mcud_mac_f32(weight, (float)value[7], s7);
    }
    out[0] = s0 / divisor;
    out[1] = s1 / divisor;
    out[2] = s2 / divisor;
    out[3] = s3 / divisor;
    out[4] = s4 / divisor;
    out[5] = s5 / divisor;
    out[6] = s6 / divisor;
    out[7] = s7 / divisor;
}

/* Computes the sum of the rows of `value` times their weights, divided by `divisor`. */
static void mix(const mcud_attend_heads *of, const float *weights, const int8_t *value, int32_t count,
                float divisor, float *out)
{
    const int32_t pitch = of->value_pitch;
    int32_t j = 0;
    for (; j + 8 <= of->width; j += 8) {
        mix_8(weights, value + j, pitch, count, divisor, out + j);
    }
    for (; j < of->width; j++) {
        float sum = 0.0f;
        for (int32_t row = 0; row < count; row++) {
            sum = mcud_mac_f32(weights[row], (float)value[row * pitch + j], sum);
        }
        out[j] = sum / divisor;
    }
}

void mcud_attend_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)end_row; /* there is one row */
    const mcud_attend_s8_params *params = op->params;
    const mcud_attend_heads *of = &params->of;
    const int64_t position = *(const int32_t *)mcud_row(op->in[0], 0);
    const float *query = mcud_row(op->in[1], 0);
    const int8_t *keys = mcud_row(op->in[2], 0);
    const int8_t *values = mcud_row(op->in[3], 0);
    const float *key_scales = params->scaled ? mcud_row(op->in[4], 0) : NULL;
    const float *value_scales = params->scaled ? mcud_row(op->in[5], 0) : NULL;
    float *out = mcud_row(op->out, first_row);
    float *weights = mcud_row(op->scratch, 0);
    const mcud_attended rows = mcud_attended_rows(&params->live, position);
    for (int32_t head = 0; head < of->heads; head++) {
        const int32_t shared = head / of->group;
        const int8_t *key = keys + shared * of->key_head + rows.first * of->key_pitch;
        const int8_t *value = values + shared * of->value_head + rows.first * of->value_pitch;
        const float *scale = NULL;
        if (params->scaled) {
            scale = key_scales + shared * params->key_scales.head + rows.first * params->key_scales.pitch;
        }
        const float sum = rows.alike ? mcud_weigh_alike_f32(weights, rows.count)
                                     : weigh(params, query, key, scale, rows.count, weights);
        if (params->scaled) {
            scale = value_scales + shared * params->value_scales.head + rows.first * params->value_scales.pitch;
            apply(&params->value_scales, scale, rows.count, weights);
        }
        mix(of, weights, value, rows.count, sum, out);
        if (!params->scaled) {
            for (int32_t i = 0; i < of->width; i++) {
                out[i] = (out[i] - params->value_zero) * params->value_scale;
            }
        }
        query += of->depth;
        out += of->width;
    }
}
