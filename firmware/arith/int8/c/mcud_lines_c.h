/* mcud_lines_s8.h in portable C. */
#ifndef MCUD_LINES_C_H
#define MCUD_LINES_C_H

static inline void mcud_interleave_lines(int8_t *to, int32_t line, int32_t height, const mcud_two_rows *rows)
{
    for (int32_t i = 0; i < 2; i++) {
        const int8_t *at = rows->at[i];
        for (int32_t col = 0; col < rows->columns; col++, at += rows->step[i]) {
            for (int32_t k = 0; k < rows->channels; k++) {
                to[k * line + col * height + i] = at[k];
            }
        }
    }
}

/* `vectors`: the number of 16-byte vectors that the weights of a record fill, 2 or 4. */
static inline void mcud_lines_s8(const mcud_lines_outputs *of, int32_t vectors)
{
    const mcud_finish_s8 finish = {of->zero_point, 0, 0};
    const int32_t words = 1 + MCUD_FACTORS + 4 * vectors;
    for (int32_t k = 0; k < of->channels; k++) {
        const int32_t *const record = of->records + k * words;
        const int8_t *const w = (const int8_t *)(record + 1 + MCUD_FACTORS);
        for (int32_t row = 0; row < of->rows; row++) {
            const int8_t *x = of->x + k * of->line + row;
            for (int32_t col = 0; col < of->outputs; col++, x += of->step) {
                int32_t sum = record[0];
                /* the last `row` weights are 0, and their values may lie after the line */
                for (int32_t i = 0; i < 16 * vectors - row; i++) {
                    sum += x[i] * w[i];
                }
                of->y[k + row * of->row + col * of->pitch] =
                    MCUD_RESULT_BY_VECTORS(sum, record + 1, 1, &finish);
            }
        }
    }
}

#endif
