#include "avgpool_f32_by_rows.h"

/* Adds four channels of `pixels` pixels, which are `pitch` values apart. */
static void add_four(const float *x, int32_t pixels, int32_t pitch, float sums[4])
{
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    float d = sums[3];
    for (int32_t i = 0; i < pixels; i++, x += pitch) {
        a += x[0];
        b += x[1];
        c += x[2];
        d += x[3];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

static float add_one(const float *x, int32_t pixels, int32_t pitch, float sum)
{
    for (int32_t i = 0; i < pixels; i++, x += pitch) {
        sum += *x;
    }
    return sum;
}

/* Adds all pixels of some rows that are contiguous. */
static void add_run(const float *x, int32_t pixels, int32_t channels, float *sums)
{
    int32_t c = 0;
    for (; c + 4 <= channels; c += 4) {
        add_four(x + c, pixels, channels, sums + c);
    }
    for (; c < channels; c++) {
        sums[c] = add_one(x + c, pixels, channels, sums[c]);
    }
}

void mcud_avgpool_f32_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_f32_by_rows_params *params = op->params;
    const int32_t channels = params->channels;
    float *sums = mcud_row(op->scratch, first_row);
    for (int32_t c = 0; first_row == 0 && c < channels; c++) {
        sums[c] = 0.0f;
    }
    for (int32_t row = first_row; row < end_row;) {
        const int32_t run_end = mcud_run_end(op->in[0], row, end_row);
        add_run(mcud_row(op->in[0], row), (run_end - row) * params->input_cols, channels, sums);
        row = run_end;
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    float *out = mcud_row(op->out, 0);
    for (int32_t c = 0; c < channels; c++) {
        out[c] = sums[c] * params->factor;
    }
}
