#include "softmax_f32_rows.h"

#include "mcud_exponential_f32.h"

static float value_at(const mcud_tensor *tensor, int32_t row, int32_t element)
{
    const float *values = mcud_row(tensor, row);
    return values[element];
}

void mcud_softmax_f32_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_softmax_f32_rows_params *params = op->params;
    const mcud_tensor *in = op->in[0];
    for (int32_t element = 0; element < params->row_elements; element++) {
        float max = value_at(in, 0, element);
        for (int32_t row = 1; row < params->rows; row++) {
            const float value = value_at(in, row, element);
            max = value > max ? value : max;
        }
        float sum = 0.0f;
        for (int32_t row = 0; row < params->rows; row++) {
            sum += mcud_expf(value_at(in, row, element) - max);
        }
        for (int32_t row = first_row; row < end_row; row++) {
            float *out = mcud_row(op->out, row);
            out[element] = mcud_expf(value_at(in, row, element) - max) / sum;
        }
    }
}
