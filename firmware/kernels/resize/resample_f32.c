#include "resample_f32.h"

#include <string.h>

static void fill(float *out, float value, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        out[i] = value;
    }
}

static void add_weighted(float *sum, const float *in, float weight, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum[i] += weight * in[i];
    }
}

static void resample_cols(const mcud_resample_f32_params *params, const float *line, float *out)
{
    const int32_t channels = params->channels;
    for (int32_t col = 0; col < params->output_cols; col++, out += channels) {
        const int32_t taps = params->col_taps[col];
        const float *weights = params->col_weights + col * params->most_col_taps;
        const float *in = line + params->cols[col] * channels;
        fill(out, taps > 0 ? 0.0f : params->outside, channels);
        for (int32_t tap = 0; tap < taps; tap++) {
            add_weighted(out, in + tap * channels, weights[tap], channels);
        }
    }
}

void mcud_resample_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_resample_f32_params *params = op->params;
    const int32_t line_values = params->input_cols * params->channels;
    float *line = mcud_row(op->scratch, first_row);
    for (int32_t row = first_row; row < end_row; row++) {
        const int32_t taps = params->row_taps[row];
        const float *weights = params->row_weights + row * params->most_row_taps;
        float *out = mcud_row(op->out, row);
        if (taps == 0) {
            fill(out, params->outside, params->output_cols * params->channels);
            continue;
        }
        memset(line, 0, (size_t)line_values * sizeof *line);
        for (int32_t tap = 0; tap < taps; tap++) {
            add_weighted(line, mcud_row(op->in[0], params->rows[row] + tap), weights[tap], line_values);
        }
        resample_cols(params, line, out);
    }
}
