#include "matmul_s8_wide.h"

#include "mcud_matrix.h"
#include "mcud_wide_s8.h"
#include "mcud_widen_s8.h"

enum { MOST_LINES = 4 };

typedef struct {
    mcud_matrix a;
    int32_t k; /* values of a line */
    int32_t first;
    int32_t end;
} lines_of_a;

/* Packs the matrix as records, whose biases correct for the zero point of a. */
static void widen(const mcud_matmul_s8_wide_params *params, const mcud_matrix *b, int32_t *records)
{
    const mcud_widened to = {records, 4 + 2 * params->pairs, params->n, params->b_zero_point};
    int32_t *const end = records + (params->n + 1) / 2 * to.record_words;
    for (int32_t *record = records; record < end; record += to.record_words) {
        record[0] = 0;
        record[1] = 0;
    }
    for (int32_t i = 2; params->n % 2 != 0 && i < to.record_words; i++) { /* an odd last channel has no partner */
        end[i - to.record_words] = 0;
    }
    for (int32_t line = 0; params->transposed != 0 && line < params->n; line++) {
        mcud_widen_line(&to, line, mcud_matrix_line(b, line), params->k);
    }
    for (int32_t k = 0; params->transposed == 0 && k < params->k; k += 4) {
        const int32_t count = params->k - k < 4 ? params->k - k : 4;
        const int8_t *lines[4];
        for (int32_t i = 0; i < 4; i++) {
            lines[i] = mcud_matrix_line(b, i < count ? k + i : k);
        }
        mcud_widen_lines(&to, k, lines, count);
    }
    for (int32_t *record = records; record < end; record += to.record_words) {
        record[0] *= -params->a_zero_point;
        record[1] *= -params->a_zero_point;
        record[to.record_words - 2] = params->quant.multiplier;
        record[to.record_words - 1] = params->quant.multiplier;
    }
}

/* Multiplies lines [first, end) of a with the records to y; x is scratch for MOST_LINES expanded lines. */
static void multiply(const mcud_wide_s8 *by, const lines_of_a *part, int16_t *x, int8_t *y)
{
    int32_t left = part->end - part->first;
    while (left > 0) {
        const int32_t block = mcud_wide_next(left, MOST_LINES);
        const int8_t *lines[MOST_LINES];
        for (int32_t i = 0; i < block; i++) {
            lines[i] = mcud_matrix_line(&part->a, part->end - left + i);
        }
        if (block == 4) {
            mcud_wide_expand(x, lines, part->k);
        }
        for (int32_t i = 0; block < 4 && i < block; i++) {
            mcud_expand(x + 2 * i * by->pairs, lines[i], part->k, 1);
        }
        mcud_wide_multiply(by, x, block, y);
        y += block * by->pitch;
        left -= block;
    }
}

void mcud_matmul_s8_wide(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_wide_params *params = op->params;
    const int32_t batched = params->batched;
    const int32_t matrices = batched != 0 ? 0 : params->m; /* in a row of b */
    const int32_t end = batched != 0 ? end_row : params->m;
    void *const scratch = mcud_row(op->scratch, first_row);
    int32_t *const records = (int32_t *)scratch + MOST_LINES * params->pairs;
    const mcud_wide_s8 by = {
        .zero_point = params->quant.zero_point,
        .pitch = batched != 0 ? params->n : params->m * params->n,
        .channels = params->n,
        .pairs = params->pairs,
        .step = 4 * params->pairs,
        .records = records,
    };
    lines_of_a part = {.k = params->k, .first = batched != 0 ? 0 : first_row, .end = batched != 0 ? params->m : end_row};
    for (int32_t i = batched != 0 ? first_row : 0; i < end; i++) {
        const mcud_matrix b = params->transposed != 0
                                  ? mcud_matrix_of(op->in[1], i, matrices, params->n, params->k)
                                  : mcud_matrix_of(op->in[1], i, matrices, params->k, params->n);
        widen(params, &b, records);
        part.a = mcud_matrix_of(op->in[0], i, matrices, end_row, params->k);
        int8_t *const y = batched != 0 ? mcud_row(op->out, i) : (int8_t *)mcud_row(op->out, first_row) + i * params->n;
        multiply(&by, &part, scratch, y);
    }
}
