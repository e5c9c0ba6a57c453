#include "matmul_s8_mve.h"

#include "mcud_matrix.h"
#include "mcud_pack_fours.h"
#include "mcud_window.h"

#define MCUD_PIXEL_OFFSETS
#include "mcud_pixel_blocks_s8.h"

enum { VECTOR = 16, MOST_LINES = 24 };

typedef struct {
    int32_t *records;
    int32_t words;   /* of a record */
    int32_t fours;   /* records */
    int32_t vectors; /* of a line */
    int8_t *ones;    /* [2 * vectors][VECTOR] */
} packed;

/* Packs the matrix as records, whose biases correct for the zero point of a. */
static void pack(const mcud_matmul_s8_mve_params *params, const mcud_matrix *b, const packed *to)
{
    const int32_t pair = 2 * VECTOR * to->vectors; /* bytes of two channels */
    const int32_t pitch = 4 * to->words;
    int8_t *const weights = (int8_t *)to->records;
    mcud_vector_fill(weights, 0, pitch * to->fours);
    for (int32_t line = 0; params->transposed != 0 && line < params->n; line++) {
        int8_t *w = weights + line / 4 * pitch + line % 2 * pair + line / 2 % 2 * VECTOR;
        const int8_t *from = mcud_matrix_line(b, line);
        for (int32_t left = params->k; left > 0; left -= VECTOR, from += VECTOR, w += 2 * VECTOR) {
            mcud_vector_copy(w, from, left < VECTOR ? left : VECTOR);
        }
    }
    for (int32_t line = 0; params->transposed == 0 && line < params->k; line++) {
        mcud_scatter_channels(weights + line / VECTOR * 2 * VECTOR + line % VECTOR, mcud_matrix_line(b, line),
                              params->n, pair, pitch);
    }
    const int32_t constant = params->k * params->a_zero_point * params->b_zero_point;
    for (int32_t *record = to->records; record < to->records + to->fours * to->words; record += to->words) {
        int32_t *const bias = record + to->words - 8;
        int32_t even[2] = {0, 0};
        int32_t odd[2] = {0, 0};
        mcud_vector_dot_1x2(to->ones, params->k, mcud_vector_dot_1x2(to->ones, params->k, record, even), odd);
        for (int32_t i = 0; i < 4; i++) {
            bias[i] = constant - params->a_zero_point * (i % 2 == 0 ? even : odd)[i / 2];
            bias[4 + i] = params->quant.multiplier;
        }
    }
}

/* Multiplies lines [first, end) of a with the records to y[][n], whose lines are `by->pitch` apart. */
static void multiply(const mcud_matmul_s8_mve_params *params, mcud_vector_channels *by, const int8_t *ones,
                     const mcud_matrix *a, mcud_taps lines, int8_t *y)
{
    while (lines.first < lines.end) {
        const int32_t end = mcud_matrix_run_end(a, lines.first, lines.end);
        const int32_t count = end - lines.first < MOST_LINES ? end - lines.first : MOST_LINES;
        const int8_t *const x = mcud_matrix_line(a, lines.first);
        int32_t offsets[MOST_LINES + 2]; /* the zero point of b times the sum of each line */
        for (int32_t i = 0; i < count; i++) {
            int32_t sums[2] = {0, 0};
            mcud_vector_dot_1x2(x + i * a->pitch, params->k, (const int32_t *)(const void *)ones, sums);
            offsets[i] = -params->b_zero_point * sums[0];
        }
        offsets[count] = offsets[count - 1];
        offsets[count + 1] = offsets[count - 1];
        by->offsets = offsets;
        mcud_blocks_of_pixels(by, x, a->pitch, count, y);
        y += count * by->pitch;
        lines.first += count;
    }
}

void mcud_matmul_s8_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_matmul_s8_mve_params *params = op->params;
    const int32_t batched = params->batched;
    const int32_t matrices = batched != 0 ? 0 : params->m; /* in a row of b */
    const int32_t end = batched != 0 ? end_row : params->m;
    const int32_t vectors = (params->k + VECTOR - 1) / VECTOR;
    packed to = {mcud_row(op->scratch, first_row), 16 * vectors + 8, (params->n + 3) / 4, vectors, NULL};
    to.ones = (int8_t *)(to.records + to.words * to.fours);
    mcud_vector_fill(to.ones, 1, 2 * VECTOR * vectors);
    mcud_vector_channels by = {
        .records = to.records,
        .channels = params->n,
        .pitch = batched != 0 ? params->n : params->m * params->n,
        .depth = params->k,
        .finish = {params->quant.zero_point, 0, 0},
    };
    const mcud_taps lines = {batched != 0 ? 0 : first_row, batched != 0 ? params->m : end_row};
    for (int32_t i = batched != 0 ? first_row : 0; i < end; i++) {
        const mcud_matrix b = params->transposed != 0
                                  ? mcud_matrix_of(op->in[1], i, matrices, params->n, params->k)
                                  : mcud_matrix_of(op->in[1], i, matrices, params->k, params->n);
        pack(params, &b, &to);
        const mcud_matrix a = mcud_matrix_of(op->in[0], i, matrices, end_row, params->k);
        int8_t *const y = batched != 0 ? mcud_row(op->out, i) : (int8_t *)mcud_row(op->out, first_row) + i * params->n;
        multiply(params, &by, to.ones, &a, lines, y);
    }
}
