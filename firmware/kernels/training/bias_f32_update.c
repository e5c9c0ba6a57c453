#include "bias_f32_update.h"

#include "mcud_updates_f32.h"
#include "mcud_window.h"

/* Adds the pixels of some rows of the gradient to the sums of four channels from c on. */
static void add_4(const mcud_op *op, const mcud_taps *rows, int32_t c, float sums[4])
{
    const mcud_bias_f32_update_params *params = op->params;
    float s0 = sums[0];
    float s1 = sums[1];
    float s2 = sums[2];
    float s3 = sums[3];
    for (int32_t row = rows->first; row < rows->end; row++) {
        const float *gradient = mcud_row(op->in[0], row);
        gradient += c;
        for (int32_t col = 0; col < params->cols; col++, gradient += params->channels) {
            s0 += gradient[0];
            s1 += gradient[1];
            s2 += gradient[2];
            s3 += gradient[3];
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* The same for channel c. */
static float add_1(const mcud_op *op, const mcud_taps *rows, int32_t c, float sum)
{
    const mcud_bias_f32_update_params *params = op->params;
    for (int32_t row = rows->first; row < rows->end; row++) {
        const float *gradient = mcud_row(op->in[0], row);
        for (int32_t col = 0; col < params->cols; col++) {
            sum += gradient[col * params->channels + c];
        }
    }
    return sum;
}

void mcud_bias_f32_update(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_bias_f32_update_params *params = op->params;
    const mcud_taps rows = {first_row, end_row};
    mcud_update_f32 to = {
        .before = mcud_row(op->in[1], 0),
        .out = mcud_row(op->out, 0),
        .is_first = first_row == 0,
        .is_last = (uint32_t)end_row == op->rows,
        .in_place = params->in_place,
    };
    mcud_scale_update_f32(&to, mcud_row(op->in[2], 0), params->factor);
    to.sums = to.in_place ? to.out : op->rows == 1 ? NULL : mcud_row(op->scratch, first_row);
    mcud_begin_sums_f32(&to, params->channels);
    int32_t c = 0;
    for (; c + 4 <= params->channels; c += 4) {
        float sums[4] = {0.0f}; /* for a step without memory for sums */
        add_4(op, &rows, c, to.sums != NULL ? to.sums + c : sums);
        for (int32_t i = 0; to.sums == NULL && i < 4; i++) {
            mcud_store_result_f32(&to, c + i, sums[i]);
        }
    }
    for (; c < params->channels; c++) {
        if (to.sums != NULL) {
            to.sums[c] = add_1(op, &rows, c, to.sums[c]);
        } else {
            mcud_store_result_f32(&to, c, add_1(op, &rows, c, 0.0f));
        }
    }
    mcud_end_sums_f32(&to, params->channels);
}
