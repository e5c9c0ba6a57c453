#include "avgpool_s8_by_rows.h"

#include "mcud_bytes.h"

/* Adds all pixels of some rows that are contiguous. */
static void add_run(const void *rows, int32_t pixels, int32_t channels, int32_t *sums)
{
    const uint32_t offset = 0;
    const mcud_byte_window window = {rows, &offset, 1, pixels, channels};
    for (int32_t c = 0; c < channels; c += MCUD_SUMS) {
        int32_t more[MCUD_SUMS];
        mcud_sum_window(&window, c, channels - c, more);
        for (int32_t i = 0; i < MCUD_SUMS && c + i < channels; i++) {
            sums[c + i] += more[i];
        }
    }
}

void mcud_avgpool_s8_by_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_avgpool_s8_by_rows_params *params = op->params;
    const int32_t channels = params->channels;
    int32_t *sums = mcud_row(op->scratch, first_row);
    for (int32_t c = 0; first_row == 0 && c < channels; c++) {
        sums[c] = params->bias;
    }
    for (int32_t row = first_row; row < end_row;) {
        const int32_t run_end = mcud_run_end(op->in[0], row, end_row);
        add_run(mcud_row(op->in[0], row), (run_end - row) * params->input_cols, channels, sums);
        row = run_end;
    }
    if ((uint32_t)end_row < op->rows) {
        return;
    }
    const mcud_mean_quant by = {.multiplier = params->quant.multiplier, .shift = params->quant.shift,
                                .zero_point = params->quant.zero_point,
                                .taps = (int32_t)op->rows * params->input_cols};
    mcud_means(sums, channels, &by, mcud_row(op->out, 0));
}
